package capability

import (
	"slices"
	"strings"
)

// folderChangers may put files into the folders that they name, by names that no
// argument says, or take them out, as decompressors may; unpackers into the one they are started
// in too.
var (
	folderChangers = list(`
		cp mv ln install rsync rm rmdir unlink gcp gmv gln ginstall grm grmdir scp ditto trash shred zip
		split gsplit csplit gcsplit
	`)
	unpackers = list(`
		tar gtar bsdtar unzip bsdunzip cpio bsdcpio pax 7z 7za 7zr 7zz unrar unar rar ar jar cabextract dpkg-deb unsquashfs
		uncompress uudecode patch wget
	`)
)

// decompressors call a file as the one that they read, without its ending; linkers one
// that nobody names as what it leads to; splitters several by how they begin.
var (
	decompressors = list(`
		gzip gunzip pigz unpigz xz unxz lzma unlzma bzip bunzip pbzip lbzip lbunzip zstd unzstd zstdmt pzstd lz unlz brotli
		unbrotli lzip plzip lunzip lzop unlzop compress uncompress
	`)
	linkers   = list("ln gln")
	splitters = list("split gsplit csplit gcsplit")
)

// readers write nothing, whatever their options, unless a rule denies these; listers
// among them show no more of a file than its name. Of git, some subcommands are such.
var (
	listers = list("ls gls stat du gdu find gfind fd fdfind")
	readers = append(list(`
		cat head tail wc gwc file diff gdiff cmp rg grep egrep fgrep ggrep jq cut nl od strings cksum
		md5sum sha1sum sha224sum sha256sum sha384sum sha512sum test realpath readlink basename dirname
	`), listers...)
	gitListers = list("status ls-files")
	gitReaders = append(list("diff log show add commit blame grep"), gitListers...)
)

// does reports whether a program is called that is one of some, or git with one of
// some subcommands, and that does no more than its name says.
func (r *Requirement) does(programs, subcommands []string) bool {
	if len(r.argv) == 0 || r.excess != "" {
		return false
	}
	name := unversioned(programName(r.argv[0]))
	if name == "git" {
		_, rest := optionRules[name].split(r.argv[1:])
		switch {
		case len(rest) == 0:
			return false
		case rest[0] == "status" && slices.ContainsFunc(rest, isVerbose):
			return slices.Contains(subcommands, "diff") // which it shows then
		}
		return slices.Contains(subcommands, rest[0])
	}
	return slices.Contains(programs, name) || slices.Contains(programs, programName(r.argv[0])) // md5sum has no version
}

func isVerbose(word string) bool {
	return strings.HasPrefix(word, "--v") || isCluster(word) && strings.Contains(word, "v")
}

// A habit is what some programs do when an option stands among their words: the letters
// of it, and how it begins in full.
type habit struct {
	programs       []string
	letters, begin string
}

var (
	// deepChangers change what lies in the folders that they name.
	deepChangers = habit{list("chmod chown chgrp gchmod gchown gchgrp chcon chattr chflags setfacl"), "R", "--rec"}
	// namers have somebody else name the file that they write.
	namers = []habit{
		{list("curl"), "OJ", "--remote"},
		{list("gzip gunzip pigz unpigz lzop unlzop"), "N", "--na"},
		{list("lzop unlzop"), "Px", "--pa"},
	}
)

// of reports whether an argv has the habit.
func (h habit) of(argv []string) bool {
	return runsOneOf(argv, h.programs) && slices.ContainsFunc(argv, func(word string) bool {
		return strings.HasPrefix(word, h.begin) ||
			strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.ContainsAny(word, h.letters)
	})
}

// changesFolders reports whether an argv may change files of any name in the folders
// that it names.
func changesFolders(argv []string) bool {
	return runsOneOf(argv, folderChangers) || runsOneOf(argv, decompressors) || deepChangers.of(argv)
}

// writesHere reports whether an argv may change files of any name where it is started.
func writesHere(argv []string) bool {
	named := 0
	for _, word := range argv {
		if !strings.HasPrefix(word, "-") {
			named++
		}
	}
	return slices.ContainsFunc(namers, func(h habit) bool { return h.of(argv) }) ||
		runsOneOf(argv, unpackers) || runsOneOf(argv, linkers) && (named < 3 || needsPatterns(argv[0]))
}

// runsOneOf reports whether an argv runs one of some programs. Of a program that runs
// others, any word may name one.
func runsOneOf(argv, programs []string) bool {
	if len(argv) > 0 && !needsPatterns(argv[0]) {
		argv = argv[:1]
	}
	return slices.ContainsFunc(argv, func(word string) bool { return slices.Contains(programs, unversioned(programName(word))) })
}
