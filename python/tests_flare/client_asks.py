"""Sites that correct their local steps and tell how well their groups are served."""

from bowls import Walker
from fedstay.flare import serve

serve(Walker)
