"""What every method shares: the base class, its fields, features, state, model files and checks."""
