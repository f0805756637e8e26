"""Says hello."""

print("hello")
