package hostfs

// Alike is for tests, which cannot make as many files as are looked at.
func Alike(dir, name string, most int) (string, error) { return alike(dir, name, most) }
