"""What runs at every site: all of it."""

from fedstay.flare import serve
from hospital import Hospital

serve(Hospital)
