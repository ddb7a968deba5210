"""An objective -> weights with a certificate, or an exception."""
