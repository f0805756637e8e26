package mapping

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// authority is what stands for a host in a text without a scheme that some reader completes with one, as a browser
// does with //a.com and Windows with \\server\share; "" where the text is none. A comment begins with slashes as well,
// and so do XPath and what is made of Base64: what stands behind them has to look like a host.
func authority(text string) string {
	text = strings.TrimFunc(text, isUnseen)
	host := strings.TrimLeft(text, `/\`)
	slashes := text[:len(text)-len(host)]
	if len(slashes) < 2 {
		return ""
	}
	if plain := anyShare.ReplaceAllString(host, ""); plain != host {
		slashes, host = `\\`, plain
	}
	rest := ""
	if i := strings.IndexAny(host, `/\?#`); i >= 0 {
		host, rest = host[:i], host[i:]
	}
	server, _, _ := strings.Cut(host, "@") // as Windows writes a port
	if slashes == `\\` && (isShare(server, rest) || isHost(server)) || isHost(host) {
		return host
	}
	return ""
}

// anyShare is how Windows may begin a share as well, behind two slashes.
var anyShare = regexp.MustCompile(`^[?.][/\\](?i:unc)[/\\]`)

// isShare reports whether names of a server and of one of its shares follow two backslashes. A regular expression
// in a text of another language has them as well, before one letter.
func isShare(server, rest string) bool {
	share, ok := strings.CutPrefix(rest, `\`)
	return ok && len(server) > 1 && isLabel(server) && share != "" && !strings.HasPrefix(share, `\`)
}

// isHost reports whether a text can be taken for a host of the network: an address, a name with dots, that of this
// machine, or what has a port.
func isHost(text string) bool {
	text = strings.Map(seen, text[strings.LastIndexByte(text, '@')+1:])
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	host := strings.TrimRight(text, "0123456789")
	ported := host != text && strings.HasSuffix(host, ":") && len(host) > 1
	if !ported {
		host = strings.TrimSuffix(text, ":")
	}
	host = strings.TrimSuffix(host, ":")
	if inner, ok := strings.CutPrefix(host, "["); ok {
		_, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil
	}
	labels := strings.FieldsFunc(strings.TrimSuffix(host, "."), func(r rune) bool { return strings.ContainsRune(".。．｡", r) })
	if len(labels) == 0 || strings.ContainsAny(host, "<>^|%\"`{}[]") || strings.ContainsFunc(host, isUnseen) {
		return false // also as it was escaped
	}
	last := labels[len(labels)-1]
	return isLabel(last) && (len(labels) > 1 || ported || strings.EqualFold(last, "localhost") || isNumber(last))
}

// seen leaves out what some readers leave out of hosts.
func seen(r rune) rune {
	if !unicode.IsSpace(r) && isUnseen(r) {
		return -1
	}
	return r
}

// isNumber reports whether a name is an address to browsers, which is one number.
func isNumber(name string) bool {
	name = strings.ToLower(name)
	return strings.Trim(name, "0123456789") == "" || strings.HasPrefix(name, "0x") && strings.Trim(name[2:], "0123456789abcdef") == ""
}

// isLabel reports whether a text can be one of the names that a host is made of, the last one above all.
func isLabel(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
}
