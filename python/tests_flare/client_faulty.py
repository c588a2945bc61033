"""Two sites with bad luck: one fails for a round, one is killed."""

from bowls import Bowl, Doomed, Unlucky
from fedstay.flare import serve

serve(lambda name: {"site-2": Unlucky, "site-3": Doomed}.get(name, Bowl)(name))
