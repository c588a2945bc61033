"""A site's script: the whole of it, as a user would write it."""

from bowls import Bowl
from fedstay.flare import serve

serve(Bowl)
