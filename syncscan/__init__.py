"""syncscan finds the lines where a PyTorch program makes its host wait for its device, and says what each costs."""
