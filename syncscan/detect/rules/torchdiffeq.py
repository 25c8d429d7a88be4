"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

_FIXED = (
    "method='rk4' with options={'step_size': h} takes a known number of steps and reads far less; looser rtol and atol "
    "take fewer steps; python -O skips the assertions."
)

_PLACES = (
    # 0.2.5, rk_common.py, _adaptive_step: `assert torch.isfinite(y0).all()`; python -O leaves asserts out
    LibraryPlace(
        file="torchdiffeq/_impl/rk_common.py",
        functions=("_adaptive_step",),
        after=("aten::all",),
        title="the solver checks whether its state is finite",
        fix="python -O skips this assertion; a fixed-step solver (method='rk4') has none.",
        cause=Cause.CHECK,
    ),
    # 0.2.5, rk_common.py: _advance (`while next_t > self.rk_state.t1`), _runge_kutta_step (`if alpha_i == 1.`),
    # _adaptive_step (`if accept_step`, `if dt > self.max_step`), _before_integrate (`(counts > 1).any()`)
    LibraryPlace(
        file="torchdiffeq/_impl/rk_common.py",
        direction="DtoH",
        title="the adaptive solver reads the error and the time of its step",
        fix=_FIXED,
    ),
    # misc.py, _optimal_step_size: `if error_ratio == 0`; interp.py, _interp_evaluate: `assert (t0 <= t) & (t <= t1)`
    *(
        LibraryPlace(
            file=f"torchdiffeq/_impl/{file}",
            functions=functions,
            direction="DtoH",
            title="the adaptive solver reads the error and the time of its step",
            fix=_FIXED,
        )
        for file, functions in (("misc.py", ("_optimal_step_size",)), ("interp.py", ()))
    ),
    # misc.py, _select_initial_step: `if d0 < 1e-5 or d1 < 1e-5`, not called where options has first_step
    LibraryPlace(
        file="torchdiffeq/_impl/misc.py",
        functions=("_select_initial_step",),
        title="the adaptive solver looks for its first step",
        fix="options={'first_step': h} avoids the search, which runs once per call of odeint.",
    ),
    # misc.py, _optimal_step_size: `torch.tensor(order, dtype=last_step.dtype, device=last_step.device)`
    LibraryPlace(
        file="torchdiffeq/_impl/misc.py",
        functions=("_optimal_step_size",),
        direction="HtoD",
        title="the adaptive solver copies a constant to the device at each step",
        fix=_FIXED,
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # rk_common.py, __init__: torch.as_tensor(rtol, device=…), self.tableau.….to(device=…): once a call of odeint
    LibraryPlace(
        file="torchdiffeq/_impl",
        direction="HtoD",
        title="the solver copies its constants to the device",
        fix="They are copied once per call of odeint: solve for more points, or a larger batch, in one call; "
        "a rtol or atol that is a device tensor already isn't copied.",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # solvers.py, FixedGridODESolver.integrate: `while j < len(t) and t1 >= t[j]`, _linear_interp: `if t == t0`
    LibraryPlace(
        file="torchdiffeq/_impl/solvers.py",
        title="the solver checks whether an output point is reached",
        fix="One read per step and point: request fewer points (t of two, begin and end), and give the steps "
        "as options={'step_size': h}.",
    ),
    # misc.py, _check_inputs: whether t is monotonic; once a call of odeint
    LibraryPlace(
        file="torchdiffeq/_impl/misc.py",
        functions=("_check_inputs", "_check_timelike", "_decreasing"),
        title="odeint checks its time points",
        fix="They are checked once per call of odeint: solve for more points, or a larger batch, in one call; python "
        "-O skips the assertions.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
