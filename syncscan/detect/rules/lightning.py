"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

_PACKAGES = ("lightning/pytorch", "pytorch_lightning")
"""These files under the two names that the library is installed as."""

_PLACES = (
    # 2.6.6, logger_connector.py, log_metrics: `scalar_metrics = convert_tensors_to_scalars(metrics)`
    *(
        LibraryPlace(
            file=f"{package}/trainer/connectors/logger_connector/logger_connector.py",
            functions=("log_metrics",),
            title="Lightning reads logged values back",
            fix="Trainer(log_every_n_steps=50): it reads only in steps that it logs; or log fewer values with "
            "on_step=False.",
        )
        for package in _PACKAGES
    ),
    # 2.6.6, result.py, metrics, which on_batch_end asks for: `if result_metric.meta.prog_bar:`
    # `metrics["pbar"][forked_name] = convert_tensors_to_scalars(value)`
    *(
        LibraryPlace(
            file=f"{package}/trainer/connectors/logger_connector/result.py",
            functions=("metrics",),
            title="Lightning reads values for the progress bar after every batch",
            fix="self.log(…, prog_bar=False). Trainer(enable_progress_bar=False) avoids only the bar's own reads: "
            "the value is still read if prog_bar is True.",
        )
        for package in _PACKAGES
    ),
    # 2.6.6, core/module.py, __to_tensor: `torch.tensor(value, device=self.device)` of what isn't a tensor yet
    *(
        LibraryPlace(
            file=f"{package}/core/module.py",
            functions=("__to_tensor", "_LightningModule__to_tensor"),
            direction="HtoD",
            title="self.log makes a device tensor of a Python number",
            fix="self.log(name, torch.full((), value, device=self.device)), which needs no copy, or write it with "
            "self.logger.log_metrics({name: value}), which needs no tensor.",
            cause=Cause.PAGEABLE,
            removal=Removal.PINNED_COPY,
        )
        for package in _PACKAGES
    ),
    # 2.6.6, core/hooks.py, transfer_batch_to_device: fabric's move_data_to_device has non_blocking=True already. The
    # driver then waits only where it has to: not seen on an H200
    *(
        LibraryPlace(
            file=f"{package}/core/hooks.py",
            functions=("transfer_batch_to_device",),
            direction="HtoD",
            title="Lightning copies the batch from pageable memory",
            fix="DataLoader(pin_memory=True): Lightning copies with non_blocking=True already, which doesn't wait "
            "if the batch is pinned; don't change a batch on the host until the copy has run.",
            cause=Cause.PAGEABLE,
            removal=Removal.PINNED_COPY,
        )
        for package in _PACKAGES
    ),
    # 2.6.6, callbacks/throughput_monitor.py, _update: `torch.cuda.synchronize()` after every batch
    *(
        LibraryPlace(
            file=f"{package}/callbacks/throughput_monitor.py",
            functions=("_update",),
            title="ThroughputMonitor waits for the whole device after every batch",
            fix="Leave the ThroughputMonitor out of Trainer(callbacks=[…]), and time a few hundred steps at once.",
            cause=Cause.EXPLICIT,
        )
        for package in _PACKAGES
    ),
    # 2.6.6, callbacks/lr_monitor.py, _extract_stats: `torch.tensor(value, device=…)` in the steps that are logged
    *(
        LibraryPlace(
            file=f"{package}/callbacks/lr_monitor.py",
            direction="HtoD",
            title="LearningRateMonitor copies each learning rate to the device",
            fix="LearningRateMonitor(logging_interval='epoch'), or a larger Trainer(log_every_n_steps=50): it copies "
            "only in steps that are logged.",
            cause=Cause.PAGEABLE,
            removal=Removal.PINNED_COPY,
        )
        for package in _PACKAGES
    ),
    # 2.6.6, utilities/grads.py, grad_norm: `torch.tensor(list(norms.values()))` reads each norm
    *(
        LibraryPlace(
            file=f"{package}/utilities/grads.py",
            functions=("grad_norm",),
            title="grad_norm reads the norm of each parameter's gradient",
            fix="torch.nn.utils.get_total_norm([p.grad for p in self.parameters() if p.grad is not None]) stays on the "
            "device and can be logged; call grad_norm every N steps.",
        )
        for package in _PACKAGES
    ),
    # 2.6.6, loops/training_epoch_loop.py, _broadcast_sigterm_tensor: `sigterm_tensor.item()`, with several ranks
    *(
        LibraryPlace(
            file=f"{package}/loops/training_epoch_loop.py",
            functions=("_broadcast_sigterm_tensor",),
            title="Lightning checks after each batch whether any rank was asked to terminate",
            fix="No option avoids this with several ranks. Before fit(): "
            "trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None; a rank that is terminated then "
            "doesn't notify the others.",
            cause=Cause.DIST,
        )
        for package in _PACKAGES
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
