"""`/buyer`: what is remembered of a buyer, who asked, and erasing it."""
