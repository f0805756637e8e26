package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"capgate/skills"
	"capgate/upstream"
	"capgate/wire"
)

// What the extension bounds of one skill, and what we bound of all that one server
// serves.
const (
	maxSkillFiles  = 512
	maxSkillBytes  = 16 << 20
	maxSkillText   = 1 << 20 // bytes of one SKILL.md
	maxServed      = 1024    // skills
	maxServedBytes = 8 << 20 // of their SKILL.md, which are kept
	maxServedURIs  = 4 << 20 // bytes of the URIs of all their files
	maxReads       = 8       // of them that are read at the same time
)

// skillsExtension is the name of the extension for skills.
const skillsExtension = "io.modelcontextprotocol/skills"

// served is a skill as its server lists it.
type served struct {
	root        string       // the server's URI of its folder
	files       []servedFile // SKILL.md among them; nil for one that the server makes up as it is read
	name        string       // as the list says, "" when it does not
	description string       // the same
	flaw        string       // why it is shown to nobody, "" if it may be
	unread      bool         // it is one of the server's, which may have been out of order for a moment
	text        []byte       // its SKILL.md, as it was when the list was fetched
	manifest    []byte       // the same of its manifest, nil if it has none

	read atomic.Pointer[understanding] // of the text, nil before somebody has
}

// servedFile is one file of it.
type servedFile struct {
	uri    string // the server's
	digest string
	size   int64
}

// isListedLike reports whether a list says the same of two skills of one folder.
func (s *served) isListedLike(other *served) bool {
	return slices.Equal(s.files, other.files) && s.name == other.name && s.description == other.description
}

func (s *served) uri() string { return s.root + "/" + skillFile }

func (s *served) manifestURI() string { return s.root + "/" + skills.Manifest }

// file finds one of the files by the server's URI.
func (s *served) file(uri string) (servedFile, bool) {
	i := slices.IndexFunc(s.files, func(f servedFile) bool { return f.uri == uri })
	if i < 0 {
		return servedFile{}, false
	}
	return s.files[i], true
}

// extends reports whether a server said that it speaks an extension.
func extends(info upstream.Info, name string) bool {
	var doc wire.Doc
	if doc.Parse(info.Capabilities, wire.Limits{}) != nil {
		return false
	}
	all, _ := doc.Root().Get("extensions")
	v, ok := all.Get(name)
	return ok && v.Kind() == wire.Object
}

// skills fetches what skills a server has, with the SKILL.md of each: what a skill
// requires is read out of the bytes that the server serves, and not out of what its
// list says.
func (l *line) skills(ctx context.Context, conn upstream.Conn) ([]item, error) {
	read := &budget{}
	all, err := l.skillList(ctx, conn, read)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) > maxServed {
		return nil, fmt.Errorf("there are more than %d skills", maxServed)
	}
	var uris int
	for _, s := range all {
		for _, f := range s.files {
			uris += len(f.uri)
		}
	}
	if uris > maxServedURIs {
		return nil, fmt.Errorf("the URIs of the files of all skills are longer than %d bytes", maxServedURIs)
	}
	known := l.keep(all, read)
	err = atOnce(len(all), func(i int) error {
		if s := all[i]; s.flaw == "" && s.text == nil {
			return l.readSkill(ctx, conn, s, read)
		}
		return nil
	})
	items := make([]item, len(all))
	for i, s := range all {
		switch old := known[s.root]; {
		case s.flaw == "":
		case old == nil || old.flaw != s.flaw:
			l.tenant.server.log.Warn("a skill is shown to nobody", "upstream", l.up().Name, "skill", s.root[:min(len(s.root), maxSkillURI)], "why", s.flaw)
		case old.unread == s.unread && s.isListedLike(old):
			s = old
		}
		items[i] = item{skill: s}
	}
	return items, err
}

// atOnce does something for each of so many, for some of them at the same time.
func atOnce(n int, do func(i int) error) error {
	var (
		doing sync.WaitGroup
		slots = make(chan struct{}, maxReads)
		errs  = make([]error, n)
	)
	for i := range n {
		doing.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	doing.Wait()
	return errors.Join(errs...)
}

// keep takes over what is known already of skills whose digest has not changed, and
// returns all that is known.
func (l *line) keep(all []*served, spent *budget) map[string]*served {
	g := &l.lists[skillList]
	g.mu.Lock()
	defer g.mu.Unlock()
	known := make(map[string]*served, len(g.items))
	for _, it := range g.items {
		known[it.skill.root] = it.skill
	}
	for i, s := range all {
		if old := known[s.root]; old != nil && s.flaw == "" && old.flaw == "" {
			now, listed := s.file(s.uri())
			before, _ := old.file(s.uri())
			manifest, _ := s.file(s.manifestURI())
			if read, _ := old.file(s.manifestURI()); listed && now == before && manifest == read {
				if s.text == nil { // a draft was read already
					spent.bytes.Add(int64(len(old.text) + len(old.manifest)))
				}
				s.text, s.manifest = old.text, old.manifest
				if s.isListedLike(old) {
					all[i] = old
				}
			}
		}
	}
	return known
}

// skillList fetches the list of a server that speaks the extension, and makes one of
// the resources of a server that serves skills as was done before.
func (l *line) skillList(ctx context.Context, conn upstream.Conn, read *budget) ([]*served, error) {
	speaks := extends(conn.Info(), skillsExtension)
	l.speaks.Store(speaks)
	switch {
	case speaks:
		raw, err := upstream.List(ctx, conn, upstream.Listing{Method: "skills/list", Member: "skills", Meta: l.meta(conn.Info()), Scrub: l.tenant.server.scrubberOf(l.up())})
		if err != nil {
			return nil, err
		}
		all := make([]*served, len(raw))
		for i, r := range raw {
			all[i] = readEntry(r)
		}
		return l.unlisted(ctx, conn, all, read)
	case able(conn.Info(), "resources"):
		items, _, err := l.list(ctx, resourceList, listTime)
		if err != nil {
			return nil, err
		}
		return l.drafts(ctx, conn, items, read)
	}
	return nil, nil
}

// readEntry reads an entry of skills/list. One that is not as it must be has a flaw,
// and keeps the place that it claims among its server's resources.
func readEntry(raw []byte) *served {
	s, doc := new(served), new(wire.Doc)
	if err := doc.ParseLoosely(raw, wire.Limits{}); err != nil {
		s.flaw = err.Error()
		return s
	}
	uri, _ := doc.Root().Get("uri")
	text, _ := uri.Str()
	s.root = strings.TrimSuffix(text, "/"+skillFile)
	front, _ := doc.Root().Get("frontmatter")
	name, _ := front.Get("name")
	s.name, _ = name.Str()
	about, _ := front.Get("description")
	s.description, _ = about.Str()
	files, _ := doc.Root().Get("resources")
	switch {
	case s.root == text:
		s.flaw = "its URI is not one of a " + skillFile
	case !plainURI(text):
		s.flaw = "its URI " + notPlain(text)
	case !name.Equal(segmentName(path.Base(s.root))):
		s.flaw = "its name is not the end of its URI"
	case files.Equal("dynamic"):
	case files.Kind() != wire.Array || files.Len() == 0:
		s.flaw = "it does not list its files"
	default:
		s.flaw = s.readFiles(files)
	}
	if flaw := upstream.Flaw(doc); flaw != nil {
		s.flaw = flaw.Error()
	}
	return s
}

// segmentName is a segment of a plain URI, unescaped.
func segmentName(segment string) string {
	var b strings.Builder
	for segment != "" {
		var c byte
		c, segment = unescape(segment)
		b.WriteByte(c)
	}
	return b.String()
}

// readFiles reads the manifest of a skill, and says what is wrong with it.
func (s *served) readFiles(list wire.Value) (flaw string) {
	if list.Len() > maxSkillFiles {
		return fmt.Sprintf("it has more than %d files", maxSkillFiles)
	}
	for v := range list.Elems() {
		uri, _ := v.Get("uri")
		digest, _ := v.Get("digest")
		size, _ := v.Get("size")
		var f servedFile
		var sized bool
		f.uri, _ = uri.Str()
		f.digest, _ = digest.Str()
		f.size, sized = size.Int64()
		if flaw := s.add(f, sized); flaw != "" {
			return flaw
		}
	}
	return s.complete()
}

// add takes a file into the manifest.
func (s *served) add(f servedFile, sized bool) (flaw string) {
	_, twice := s.file(f.uri)
	switch {
	case !plainURI(f.uri):
		return "it lists a file whose URI " + notPlain(f.uri)
	case !within(s.root, f.uri) || f.uri == s.root:
		return "it lists a file that does not lie in its folder"
	case twice:
		return "it lists a file twice"
	case !isDigest(f.digest):
		return "it lists a file without a digest"
	case !sized || f.size < 0 || f.size > maxSkillBytes:
		return "it lists a file without a size that can be"
	}
	s.files = append(s.files, f)
	return ""
}

// complete says what is wrong with the manifest as a whole.
func (s *served) complete() (flaw string) {
	var total int64
	for _, f := range s.files {
		total += f.size
	}
	if total > maxSkillBytes {
		return fmt.Sprintf("its files are longer than %d bytes", maxSkillBytes)
	}
	if _, ok := s.file(s.uri()); !ok {
		return "its list of files lacks " + skillFile
	}
	slices.SortFunc(s.files, func(a, b servedFile) int { return strings.Compare(a.uri, b.uri) })
	return ""
}

const digestPrefix = "sha256:"

func isDigest(text string) bool {
	hexed, ok := strings.CutPrefix(text, digestPrefix)
	return ok && len(hexed) == 2*sha256.Size && strings.Trim(hexed, "0123456789abcdef") == ""
}

// errMismatch says that a server serves something else than it has listed.
var errMismatch = errors.New("the file is not the one that was decided on")

// check reports whether bytes are those of the file.
func (f servedFile) check(data []byte) error {
	if int64(len(data)) != f.size || skills.Digest(data) != f.digest {
		return errMismatch
	}
	return nil
}

// budget is what was read of one server's skills so far, in all. Reading ends where it
// is too much, so that a server cannot fill the memory until the list is looked at.
type budget struct{ bytes atomic.Int64 }

func (b *budget) spend(n int) error {
	if b.bytes.Add(int64(n)) > maxServedBytes {
		return fmt.Errorf("the %s of all skills are longer than %d bytes", skillFile, maxServedBytes)
	}
	return nil
}

// readSkill reads the SKILL.md of a skill, and its manifest if it has one. What the
// server refuses or gets wrong is a flaw of the skill; a server that does not answer is
// an error.
func (l *line) readSkill(ctx context.Context, conn upstream.Conn, s *served, read *budget) (err error) {
	if s.text, err = l.readText(ctx, conn, s, s.uri(), read); err != nil || s.flaw != "" {
		return err
	}
	if _, has := s.file(s.manifestURI()); has {
		s.manifest, err = l.readText(ctx, conn, s, s.manifestURI(), read)
	}
	return err
}

// readText reads one of the files that say what a skill requires.
func (l *line) readText(ctx context.Context, conn upstream.Conn, s *served, uri string, read *budget) ([]byte, error) {
	if err := read.spend(0); err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(uri, s.root+"/")
	f, listed := s.file(uri)
	if f.size > maxSkillText {
		s.flaw = fmt.Sprintf("its %s is longer than %d bytes", name, maxSkillText)
		return nil, nil // the skill is hidden, and its list stands
	}
	data, err := l.readFile(ctx, conn, uri)
	if err != nil {
		if failed := (*upstream.Failed)(nil); errors.As(err, &failed) || ctx.Err() != nil {
			return nil, err
		}
		s.flaw, s.unread = name+" cannot be read: "+err.Error(), !isNone(err)
		return nil, nil // as above
	}
	switch differs := listed && f.check(data) != nil; {
	case differs:
		s.flaw = name + " has not the digest that is listed"
		return nil, nil
	case len(data) > maxSkillText:
		s.flaw = fmt.Sprintf("its %s is longer than %d bytes", name, maxSkillText)
		return nil, nil
	}
	return data, read.spend(len(data))
}

// readFile reads one resource of a server as bytes.
func (l *line) readFile(ctx context.Context, conn upstream.Conn, uri string) ([]byte, error) {
	result, err := l.lookUp(ctx, conn, upstream.Request{Method: "resources/read", Name: uri}, uri)
	if err != nil {
		return nil, err
	}
	c, err := readContent(result, uri)
	return c.data, err
}

// lookUp asks a server for what there is at a URI.
func (l *line) lookUp(ctx context.Context, conn upstream.Conn, r upstream.Request, uri string) ([]byte, error) {
	r.Params = wire.AppendString([]byte(`{"uri":`), uri)
	if meta := l.meta(conn.Info()); meta != nil {
		r.Params = meta(append(r.Params, `,"_meta":`...))
	}
	r.Params = append(r.Params, '}')
	answer, err := conn.Call(ctx, r, nil)
	answer = typed(conn.Info(), answer, false)
	switch {
	case err != nil:
		return nil, err
	case answer.Error != nil:
		refused := &upstream.Refusal{Message: "the server refuses it"}
		if doc, err := wire.Parse(answer.Error); err == nil {
			code, _ := doc.Root().Get("code")
			number, _ := code.Int64()
			refused.Code = int(number)
		}
		return nil, refused
	case answer.Type != "" && answer.Type != "complete":
		return nil, errors.New("the server does not answer with the file")
	}
	return answer.Result, nil
}

// content is the one file that a resources/read has brought.
type content struct {
	data       []byte
	start, end int // of its URI in the result
}

// readContent takes the file out of a result. A result that holds anything besides
// is refused: nothing was decided on that.
func readContent(result []byte, uri string) (content, error) {
	var doc wire.Doc
	err := doc.Parse(result, wire.Limits{Bytes: len(result) + 1}) // written with escapes, a file is six times as long
	if err != nil {
		return content{}, err
	}
	list, _ := doc.Root().Get("contents")
	if list.Kind() != wire.Array || list.Len() != 1 {
		return content{}, errors.New("the result is not one file")
	}
	var c content
	for one := range list.Elems() {
		said, _ := one.Get("uri")
		text, isText := one.Get("text")
		blob, isBlob := one.Get("blob")
		if !said.Equal(uri) || isText == isBlob {
			return content{}, errors.New("the result is another file than was asked for")
		}
		c.start, c.end = said.Span()
		plain, ok := text.Str()
		if c.data = []byte(plain); isBlob {
			packed, isPacked := blob.Str()
			c.data, err = base64.StdEncoding.Strict().DecodeString(packed)
			ok = isPacked && err == nil
		}
		if !ok {
			return content{}, errors.New("the result holds neither text nor bytes")
		}
	}
	return c, nil
}
