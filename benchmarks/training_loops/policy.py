"""An on-policy agent: a rollout, then epochs of updates over shuffled indices of the host."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.distributions.categorical import Categorical


class Envs:
    def reset(self):
        return np.zeros((4, 3), np.float32)

    def step(self, actions):
        return np.random.rand(4, 3).astype(np.float32), actions * 0.5, np.random.rand(4) > 0.9


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(3, 1)

    def value(self, x):
        return self.critic(x)

    def action_and_value(self, x, action=None):
        chances = Categorical(logits=self.actor(x))
        if action is None:
            action = chances.sample()
        return action, chances.log_prob(action), chances.entropy(), self.critic(x)


device = torch.device("cuda")
envs, agent = Envs(), Agent().to(device)
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
observations = torch.zeros((8, 4, 3)).to(device)
actions, log_probs = torch.zeros((8, 4)).to(device), torch.zeros((8, 4)).to(device)
rewards, dones, values = (torch.zeros((8, 4)).to(device) for _ in range(3))
seen = torch.Tensor(envs.reset()).to(device)
done = torch.zeros(4).to(device)

for _ in range(2):
    for step in range(8):
        observations[step] = seen
        dones[step] = done
        with torch.no_grad():
            action, log_prob, _, value = agent.action_and_value(seen)
            values[step] = value.flatten()
        actions[step] = action
        log_probs[step] = log_prob
        raw, reward, ended = envs.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).to(device).view(-1)
        seen, done = torch.Tensor(raw).to(device), torch.Tensor(ended).to(device)
    with torch.no_grad():
        advantages = rewards + 0.99 * agent.value(seen).reshape(1, -1) - values
        returns = advantages + values
    order = np.arange(32)
    clipped = []
    for _ in range(2):
        np.random.shuffle(order)
        for start in range(0, 32, 8):
            chosen = order[start : start + 8]
            _, new, entropy, value = agent.action_and_value(
                observations.reshape(-1, 3)[chosen], actions.reshape(-1).long()[chosen]
            )
            ratio = (new - log_probs.reshape(-1)[chosen]).exp()
            with torch.no_grad():
                divergence = (ratio - 1 - ratio.log()).mean()
                clipped.append(((ratio - 1.0).abs() > 0.2).float().mean().item())
            picked = advantages.reshape(-1)[chosen]
            loss = -(picked * ratio).mean() + (value.view(-1) - returns.reshape(-1)[chosen]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    guessed, true = values.reshape(-1).cpu().numpy(), returns.reshape(-1).cpu().numpy()
    print(np.var(true - guessed), loss.item(), entropy.mean().item(), divergence.item(), np.mean(clipped))
