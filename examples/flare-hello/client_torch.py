"""The same site in PyTorch, with local training by Adam: a loop of one's own around a `Site`."""

import nvflare.client as flare
import torch
from fedstay.flare import Site
from hospital import CLASSES, FEATURES, Hospital

flare.init()
hospital = Hospital(flare.get_site_name())
x = torch.tensor(hospital.x, dtype=torch.float32)
y = torch.tensor(hospital.y)
net = torch.nn.Linear(FEATURES, CLASSES)
cross_entropy = torch.nn.functional.cross_entropy
site = Site(epsilon=hospital.epsilon)

while flare.is_running():
    model = flare.receive()
    net.load_state_dict({name: torch.as_tensor(array) for name, array in model.params.items()})

    # The loss and the gradient at the received weights: what the site decides by, and reports.
    net.zero_grad()
    loss = cross_entropy(net(x), y)
    loss.backward()
    gradient = {name: p.grad.clone() for name, p in net.named_parameters()}

    if site.evaluates(model):
        right = (net(x).argmax(1) == y).float().mean()
        flare.send(site.evaluation(model, loss=loss.item(), accuracy=right.item()))
        continue
    if site.leaves(model, loss.item()):
        flare.send(site.goodbye(model))
        continue

    # Any training at all.
    adam = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(5):
        adam.zero_grad()
        cross_entropy(net(x), y).backward()
        adam.step()
    report = site.report(
        model,
        loss=loss.item(),
        gradient=gradient,
        weights=net.state_dict(),
        samples=len(y),
    )
    flare.send(report)
