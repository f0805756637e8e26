package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Listen is where agents connect over HTTP: an address or a socket.
type Listen struct {
	Address   string   // host:port, "" for a socket
	Socket    string   // the path of a unix socket, absolute, "" for an address
	Cert, Key string   // the files of TLS, absolute; "" for plain HTTP
	Hosts     []string // further names, lower case, that a request may give as its Host
	Origins   []string // the origins that a browser's request may come from: https://host[:port]
}

const (
	defaultAddress = "127.0.0.1:8420"

	maxSocket = 103 // bytes of a socket's path that every system takes

	anAddress = "host:port or unix:/path.sock"
)

// files returns the files that belong to it, those that are not written empty.
func (l Listen) files() []string { return []string{l.Socket, l.Cert, l.Key} }

// At is where to connect to when the command line says so: an address of this
// machine, or a socket; an address that others reach needs the TLS that is written.
func (l Listen) At(text string, v capability.View) (Listen, error) {
	r := &reader{faults: newFaults(""), view: v, dir: v.Cwd}
	other := listening{Listen: l, host: "127.0.0.1"}
	r.address(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, &other)
	if other.Socket != "" && other.Address == "" {
		other.Cert, other.Key = "", "" // it does not leave the machine
	} else if other.Socket = ""; other.host != "" && !isLoopback(other.host) && l.Cert == "" {
		return l, &Error{Text: "tokens would travel to " + clip(text) + " in clear", Hint: "write 127.0.0.1, or add tls: to listen: of the configuration"}
	}
	if errs := Errors(r.err()); len(errs) > 0 {
		return l, &Error{Text: errs[0].Text, Hint: errs[0].Hint}
	}
	return other.Listen, nil
}

// listening is listen: while it is read.
type listening struct {
	Listen
	host     string
	insecure bool
}

// listenKeys is the table of listen: written as a map.
func listenKeys() []key[listening] {
	return []key[listening]{
		{name: "address", takes: anAddress, read: (*reader).address, help: "the same as listen: with an address"},
		{
			name: "tls", takes: "a map of files", read: (*reader).tls, under: lines("listen.tls.", tlsKeys()),
			help: "what the gateway proves itself with; without it only this machine can connect",
		},
		{
			name: "hosts", takes: "a list of names", help: "further names that agents may reach the gateway by",
			read: func(r *reader, n *yaml.Node, l *listening) {
				l.Hosts = r.words(n, "listen.hosts", "a list of names", r.hostName)
			},
		},
		{
			name: "origins", takes: "a list of origins", help: "what a request may come from, as its Origin says: https://app.example.com",
			read: func(r *reader, n *yaml.Node, l *listening) {
				l.Origins = r.words(n, "listen.origins", "a list of origins", r.origin)
			},
		},
		{
			name: "insecure", takes: "true or false", help: "true: tokens may travel in clear, where another layer protects them",
			read: func(r *reader, n *yaml.Node, l *listening) { l.insecure = r.flag(n, "listen.insecure") },
		},
	}
}

// tlsKeys is the table of listen.tls.
func tlsKeys() []key[listening] {
	return []key[listening]{
		{
			name: "cert", takes: "a file", help: "the certificate and its chain, PEM",
			read: func(r *reader, n *yaml.Node, l *listening) {
				file, _ := r.folder(n, "listen.tls.cert", "a file")
				l.Cert = file.Dir
			},
		},
		{
			name: "key", takes: "a file", help: "its private key, PEM",
			read: func(r *reader, n *yaml.Node, l *listening) {
				file, _ := r.folder(n, "listen.tls.key", "a file")
				l.Key = file.Dir
			},
		},
	}
}

// listen reads listen:, an address or a map with one.
func (r *reader) listen(n *yaml.Node, c *Config) {
	l := listening{Listen: Listen{Address: defaultAddress}, host: "127.0.0.1"}
	if n.Kind != yaml.MappingNode {
		r.address(n, &l)
	} else {
		fill(r, n, "listen", listenKeys(), &l)
	}
	local := l.host == "" || isLoopback(l.host)
	switch written := value(n, "insecure"); {
	case l.Cert != "" && l.Socket != "":
		r.at(value(n, "tls"), "remove it", "a socket needs no TLS: it does not leave the machine")
	case l.insecure && (local || l.Cert != ""):
		r.at(written, "remove it", "nothing about this address is insecure")
	case !local && !l.insecure && n.Kind == yaml.MappingNode && value(n, "tls") != nil: // whole, or already said
	case !local && !l.insecure:
		r.at(n, "write 127.0.0.1, or add tls: { cert: …, key: … }", "tokens would travel to %s in clear", clip(l.Address))
	}
	c.Listen = l.Listen
}

func (r *reader) tls(n *yaml.Node, l *listening) {
	if fill(r, n, "listen.tls", tlsKeys(), l) && (lacks(n, "cert") || lacks(n, "key")) {
		r.at(n, "write tls: { cert: cert.pem, key: key.pem }", "TLS takes a certificate and its key")
	}
}

func (r *reader) address(n *yaml.Node, l *listening) {
	text, ok := r.text(n, "listen", anAddress)
	if !ok {
		l.host = ""
		return
	}
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		l.Address, l.host, l.Socket = "", "", r.socket(n, socket)
		return
	}
	host, port, err := net.SplitHostPort(text)
	number, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case strings.Contains(text, "://"):
		r.at(n, "write 127.0.0.1:8420", "listen takes %s, not a URL", anAddress)
	case err != nil || !isHost(host) && host != "":
		r.at(n, "write 127.0.0.1:8420", "listen takes %s, which %q is not", anAddress, clip(text))
	case host == "":
		r.at(n, "write 127.0.0.1:8420, or 0.0.0.0:8420 for every address of the machine", "%q names no host", clip(text))
	case bad != nil || strconv.FormatUint(number, 10) != port:
		r.at(n, "a port is 1 to 65535, or 0 for a free one", "%q cannot be a port", clip(port))
	default:
		l.Address, l.host = text, host
		return
	}
	l.host = ""
}

// socket reads the path of a socket, which must fit into what systems have for it.
func (r *reader) socket(n *yaml.Node, text string) string {
	path := *n
	path.Value = text
	file, ok := r.folder(&path, "listen", "unix:/path.sock")
	if ok && len(file.Dir) > maxSocket {
		r.at(n, "put it into a folder with a shorter name", "the path of a socket is at most %d bytes, and %q is longer", maxSocket, clip(file.Dir))
	}
	return file.Dir
}

// hostName reads a name that stands in a Host header, with its port or for every
// port.
func (r *reader) hostName(n *yaml.Node) string {
	text, ok := r.text(n, "listen.hosts", "the name of a host")
	if ok && !isAuthority(text) {
		r.at(n, "write gate.example.com or gate.example.com:8420", "%q cannot be the name of a host", clip(text))
		return ""
	}
	return strings.ToLower(text)
}

// origin reads what a browser sends as the origin of a page.
func (r *reader) origin(n *yaml.Node) string {
	text, ok := r.text(n, "listen.origins", "an origin")
	if !ok {
		return ""
	}
	text = strings.ToLower(text)
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme != "http" && scheme != "https" || !isAuthority(rest) {
		r.at(n, "write https://app.example.com", "%q is no origin", clip(text))
		return ""
	}
	return text
}

// isAuthority reports whether a text is a host, or host:port.
func isAuthority(text string) bool {
	u, err := url.Parse("http://" + text + "/")
	return err == nil && u.Host == text && isHost(u.Hostname()) && !strings.HasSuffix(text, ":")
}

// isHost reports whether a text is an address or the name of one host.
func isHost(text string) bool {
	const maxName = 253
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	return text != "" && len(text) <= maxName && strings.Trim(text, letters+digits+"-._") == "" &&
		!strings.HasPrefix(text, ".") && !strings.Contains(text, "..")
}

// isLoopback reports whether a host is this machine, so that what is sent there
// does not leave it.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
