package proxy

// Advertised writes a definition as agents see it.
func Advertised(raw []byte, name, scope string) []byte { return advertised(raw, name, scope) }
