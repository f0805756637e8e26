package proxy

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"capgate/skills"
	"capgate/upstream"
	"capgate/wire"
)

// draftManifest is the resource in which servers listed the files of a skill before
// the extension had a way to.
const draftManifest = "_manifest"

// drafts makes skills of the resources of a server that does not speak the extension:
// a SKILL.md is one, and a manifest beside it says which files it has. Without a
// manifest it is that one file, as nothing else is bound to a digest.
func (l *line) drafts(ctx context.Context, conn upstream.Conn, items []item, read *budget) ([]*served, error) {
	var all []*served
	listed := map[string]bool{}
	for _, it := range items {
		listed[it.text("uri")] = true
	}
	for _, it := range items {
		uri := it.text("uri")
		root, ok := strings.CutSuffix(uri, "/"+skillFile)
		if !ok || !isSkillURI(uri) {
			continue
		}
		if len(all) == maxServed {
			return nil, fmt.Errorf("there are more than %d skills", maxServed)
		}
		s := &served{root: root}
		if all = append(all, s); !plainURI(uri) {
			s.flaw = "its URI " + notPlain(uri)
			continue
		}
		if err := l.draft(ctx, conn, s, read, listed[root+"/"+draftManifest]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// draft reads what there is of one skill.
func (l *line) draft(ctx context.Context, conn upstream.Conn, s *served, read *budget, hasManifest bool) error {
	if hasManifest {
		data, err := l.readFile(ctx, conn, s.root+"/"+draftManifest)
		if failed := (*upstream.Failed)(nil); errors.As(err, &failed) || ctx.Err() != nil {
			return err
		}
		if err == nil {
			s.flaw = s.readManifest(data)
			return read.spend(len(data))
		}
		s.flaw, s.unread = "its manifest cannot be read: "+err.Error(), !isNone(err)
		return nil
	}
	if err := l.readSkill(ctx, conn, s, read); err != nil || s.flaw != "" {
		return err
	}
	s.files = []servedFile{{uri: s.uri(), digest: skills.Digest(s.text), size: int64(len(s.text))}}
	return nil
}

// readManifest reads which files a skill has, and says what is wrong with that.
func (s *served) readManifest(data []byte) (flaw string) {
	doc, err := wire.Parse(data)
	if err != nil {
		return "its manifest cannot be read: " + err.Error()
	}
	list, _ := doc.Root().Get("files")
	if list.Kind() != wire.Array || list.Len() > maxSkillFiles {
		return "its manifest does not list its files, or too many"
	}
	for v := range list.Elems() {
		name, _ := v.Get("path")
		digest, _ := v.Get("hash")
		size, _ := v.Get("size")
		text, _ := name.Str()
		hash, _ := digest.Str()
		bytes, sized := size.Int64()
		f := servedFile{uri: s.root + "/" + text, digest: digestPrefix + strings.TrimPrefix(hash, digestPrefix), size: bytes}
		if path.Clean("/"+text) != "/"+text {
			return "its manifest lists a file that does not lie in its folder"
		}
		if flaw := s.add(f, sized); flaw != "" {
			return flaw
		}
	}
	if slices.ContainsFunc(s.files, func(f servedFile) bool { return f.uri == s.root+"/"+draftManifest }) {
		return "it has a file of the name of its manifest"
	}
	return s.complete()
}

// unlisted fetches the skills that a server has among its resources and leaves out of its list,
// as it may. What it does not answer for is one all the same, unless it says that there is none
// and it is not of the scheme of skills.
func (l *line) unlisted(ctx context.Context, conn upstream.Conn, all []*served, read *budget) ([]*served, error) {
	if !able(conn.Info(), "resources") {
		return all, nil
	}
	items, _, err := l.list(ctx, resourceList, listTime)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range all {
		known[s.uri()] = true
	}
	var roots []string
	for _, it := range items {
		uri := it.text("uri")
		if root, ok := strings.CutSuffix(uri, "/"+skillFile); ok && !known[uri] {
			known[uri], roots = true, append(roots, root)
		}
	}
	if len(known) > maxServed {
		return nil, fmt.Errorf("there are more than %d skills", maxServed)
	}
	more := make([]*served, len(roots))
	err = atOnce(len(roots), func(i int) error {
		uri := roots[i] + "/" + skillFile
		entry, err := l.lookUp(ctx, conn, upstream.Request{Method: "skills/get"}, uri)
		if failed := (*upstream.Failed)(nil); errors.As(err, &failed) || ctx.Err() != nil {
			return err
		}
		if isSkillURI(uri) || !isNone(err) {
			more[i] = readAnswer(entry, roots[i])
			more[i].unread = err != nil && !isNone(err)
		}
		return read.spend(len(entry))
	})
	return append(all, slices.DeleteFunc(more, func(s *served) bool { return s == nil })...), err
}

// isNone reports whether a server has said that something is not there.
func isNone(err error) bool {
	refused, ok := errors.AsType[*upstream.Refusal](err)
	return ok && (refused.Code == codeMethod || refused.Code == codeParams || refused.Code == legacyNotFound)
}

// readAnswer reads the answer to skills/get, which must be about the skill that was asked for.
func readAnswer(result []byte, root string) *served {
	if doc, err := wire.Parse(result); err == nil {
		entry, _ := doc.Root().Get("skill")
		if s := readEntry(entry.Raw()); s.root == root {
			return s
		}
	}
	return &served{root: root, flaw: "its server does not say which files it has"}
}
