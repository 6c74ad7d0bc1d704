"""Networks by name, and factories of your own."""
