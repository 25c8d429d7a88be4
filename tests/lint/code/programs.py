"""How public programs train: accumulation, rollouts, wrapped loaders, replay buffers, transforms; what is expected."""

import torch
import torchvision.transforms.functional as F
from torch.distributions import Categorical, Normal
from torch.utils.data import DataLoader


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = torch.nn.Linear(4, 2)

    def act(self, x):
        chosen = Categorical(logits=self.actor(x))  # WARNS distribution-args
        action = chosen.sample()
        return action, chosen.log_prob(action)  # WARNS distribution-args

    def draw(self, x):
        return Normal(x, 1.0, validate_args=False).rsample()

    def never_called(self, x):
        return Normal(x, 1.0).rsample()


def accumulate(model, optimizer, scaler, batches, device):
    while True:
        for batch in batches:
            loss = model(batch)
            scaler.scale(loss).backward()
        scaler.step(optimizer)  # WARNS grad-scaler low
        if step % 10 == 0:  # noqa: F821
            print(loss.item())  # WARNS item low


def rollouts(envs, optimizer, device, obs):
    agent = Agent().to(device)
    for _ in range(100):
        for _ in range(16):
            action, _ = agent.act(obs)
            obs, reward = envs.step(action.cpu().numpy())  # WARNS cpu
            obs = torch.Tensor(obs).to(device)  # WARNS to-device
            reward = torch.tensor(reward).to(device)  # WARNS to-device
        for _ in range(4):
            loss = agent.act(obs)[1].mean()
            loss.backward()
            optimizer.step()
        torch.save({"agent": agent.state_dict()}, "agent.pt")  # WARNS checkpoint-save low
        torch.save(loss, "loss.pt")


def environment_alone(envs, obs):
    for _ in range(16):
        obs = envs.step(torch.tensor(obs).numpy())


def detect(model, optimizer, data_loader, device, logger):
    for images, targets in logger.log_every(data_loader, 10):
        images = list(image.to(device) for image in images)  # noqa: C400  # WARNS to-device
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]  # WARNS to-device
        loss = sum(model(images, targets).values())
        loss.backward()
        optimizer.step()


class ReplayBuffer:
    def to_torch(self, array):
        return torch.tensor(array, device=self.device)  # WARNS tensor-constructor

    def sample(self, batch_size):
        return tuple(map(self.to_torch, self.rows(batch_size)))

    def extend(self, array):
        return torch.tensor(array, device=self.device)


class MetricLogger:
    def update(self, **values):
        for value in values.values():
            if isinstance(value, torch.Tensor):
                value = value.item()  # WARNS item
            self.total += value


class DetectionLoss:
    def __call__(self, predictions, batch):
        return self.padded(batch["targets"].unsqueeze(0))

    def padded(self, targets):
        kinds = torch.unique(targets)  # WARNS unique
        return torch.zeros(int(kinds.max()), device="cuda")  # WARNS item


class RandomCrop(torch.nn.Module):
    def forward(self, image, target):
        keep = target["masks"].sum((-1, -2)) > 0
        if keep.any():
            image = F.hflip(image)
        return image, target["masks"][keep]


class Cropped(torch.nn.Module):
    def forward(self, sample):
        keep = sample.sum((-1, -2)) > 0
        return sample[keep] if keep.any() else sample


class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.crop = Cropped()

    def __getitem__(self, k):
        return self.crop(torch.rand(3, 8, 8))


class Averages:
    def update(self, **values):
        for value in values.values():
            if isinstance(value, torch.Tensor):
                value = value.item()  # WARNS item
            self.total += value

    def append(self, value):
        if isinstance(value, torch.Tensor):
            self.total += value.item()


def averaged(model, optimizer, loader):
    averages = Averages()
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        averages.update(loss=loss)


class Masked(torch.nn.Module):
    def forward(self, x):
        if self.mask is None or self.mask.size(0) != len(x):
            self.mask = torch.tril(torch.ones(len(x), len(x))).to(x.device)  # WARNS to-device low
        return x * self.mask


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 2)

    def forward(self, image):
        return image[self.head(image) > 0]  # WARNS boolean-index


def branches(device_type, x, device):
    loader = DataLoader(x)
    for batch in loader:
        if device_type == "cuda":
            batch = batch.to(device, non_blocking=True)
        else:
            batch = batch.to(device)
        if device.type == "mps":
            batch = float(batch.sum())
        print(batch.sum().item())  # WARNS item low
