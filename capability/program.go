package capability

import (
	"path"
	"strings"
)

// list reads words with space between them.
func list(words string) []string { return strings.Fields(words) }

// programName is what a program is known by: its name without the directory, in
// lower case, since some file systems find GIT as git.
func programName(cmd string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(cmd)), ".exe")
}

// unversioned cuts the version off a name: python3.12, jq-1.6.
func unversioned(name string) string {
	if i := strings.IndexAny(name, "0123456789"); i > 0 {
		return strings.TrimRight(name[:i], "-._")
	}
	return name
}

// optionRules are the programs whose arguments are judged. What they write by
// their name alone, as sort -o does, is for the paths among their arguments.
var optionRules = byName(
	rule{
		names: list("git"),
		// Not --git-dir, --work-tree, --bare or --namespace: another repository has
		// other hooks and another configuration.
		before: list("-C -p --paginate -P --no-pager --no-replace-objects --no-optional-locks --literal-pathspecs " +
			"--glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-lazy-fetch --no-advice -v --version -h"),
		folder: list("-C"),
		denied: [excesses][]string{
			runsPrograms: list("--exec --upload-pack --receive-pack --ext-diff --textconv --filters --open-files-in-pager --help"),
			readsUnnamed: list("--no-index --pathspec-from-file"),
			// --output and a --format of one's own write .git/config.
			writesUnasked: list("--output --unsafe-paths --build-fake-ancestor"),
		},
		whole: list("--text --filter"),
		check: reachesRepository,
		subs:  gitSubcommands,
	},
	rule{
		names:  list("rg"),
		valued: "efgrt",
		denied: [excesses][]string{
			runsPrograms: list("--pre --pre-glob --hostname-bin --search-zip -z"),
			followsLinks: list("--follow -L"),
		},
	},
	rule{
		names: list("jq gojq jaq"),
		whole: list("--arg --slurp"),
		denied: [excesses][]string{
			readsUnnamed:  list("--from-file -f --rawfile --slurpfile --argfile --run-tests --library-path -L"),
			writesUnasked: list("--in-place -i"),
		},
		check: readsEnvironment,
	},
	rule{
		names: list("find gfind"),
		denied: [excesses][]string{
			runsPrograms:  list("-exec -execdir -ok -okdir"),
			followsLinks:  list("-L -H -follow"),
			readsUnnamed:  list("-files0-from"),
			writesUnasked: list("-delete -fprint -fprint0 -fprintf -fls"),
		},
	},
	rule{
		names:   list("tar gtar bsdtar"),
		bundled: true,
		valued:  "Cf",
		whole:   list("--file --checkpoint"),
		folder:  list("-C --directory --cd"),
		denied: [excesses][]string{
			// -W is bsdtar's way to give any long option; a change of volume (-M, -L)
			// asks for a command.
			runsPrograms: list("--use-compress-program -I --to-command --checkpoint-action --info-script --new-volume-script -F " +
				"--rsh-command --rmt-command --multi-volume -M --tape-length -L -W --set-mtime-command"),
			followsLinks:  list("--dereference -h --absolute-names -P --insecure --keep-directory-symlink -H"),
			readsUnnamed:  list("--files-from -T"),
			writesUnasked: list("--remove-files"),
		},
		check: namesHost,
	},
	rule{
		names:  list("grep egrep fgrep ggrep"),
		valued: "ef",
		denied: [excesses][]string{followsLinks: list("--dereference-recursive -R -S")},
	},
	rule{
		names:  list("fd fdfind"),
		valued: "CEet",
		folder: list("-C --base-directory"),
		denied: [excesses][]string{
			runsPrograms: list("--exec -x --exec-batch -X --list-details -l"),
			followsLinks: list("--follow -L"),
		},
	},
	rule{
		names: list("ag ack"),
		denied: [excesses][]string{
			runsPrograms: list("--pager --ackrc --search-zip -z"),
			followsLinks: list("--follow -f"),
			readsUnnamed: list("--files-from -x"),
		},
	},
	rule{
		names: list("sort gsort wc gwc"),
		denied: [excesses][]string{
			runsPrograms: list("--compress-program"),
			readsUnnamed: list("--files0-from"),
		},
	},
	rule{
		names: list("ls gls du gdu chmod chown chgrp"),
		denied: [excesses][]string{
			followsLinks: list("--dereference -L"),
			readsUnnamed: list("--files0-from"),
		},
	},
	rule{
		names:  list("cp gcp"),
		valued: "t",
		denied: [excesses][]string{
			followsLinks:  list("--dereference -L"),
			writesUnasked: list("--backup -b --suffix -S"),
		},
	},
	rule{
		names:  list("mv gmv ln gln"),
		valued: "t",
		denied: [excesses][]string{writesUnasked: list("--backup -b --suffix -S")},
	},
	rule{
		names:  list("install ginstall"),
		valued: "gmot",
		denied: [excesses][]string{
			runsPrograms:  list("--strip-program"),
			writesUnasked: list("--backup -b --suffix -S"),
		},
	},
	rule{
		names:  list("split gsplit"),
		denied: [excesses][]string{runsPrograms: list("--filter"), writesUnasked: list("--additional-suffix")},
	},
	rule{
		names:  list("csplit gcsplit"),
		valued: "fn",
		denied: [excesses][]string{writesUnasked: list("--suffix-format -b")},
	},
	rule{
		names: list("gzip gunzip pigz unpigz bzip bunzip zstd unzstd zstdmt pzstd lz unlz brotli unbrotli compress uncompress"),
		denied: [excesses][]string{
			readsUnnamed: list("--filelist"),
			// By --name, what is unpacked is called as its text says.
			writesUnasked: list("--suffix -S --recursive -r --name -N"),
		},
	},
	rule{
		names:  list("lzop unlzop"),
		valued: "op",
		denied: [excesses][]string{writesUnasked: list("--suffix -S --name -N -P --extract -x")},
	},
	rule{
		names:  list("xz unxz lzma unlzma lzip plzip lunzip"),
		valued: "CFMT",
		denied: [excesses][]string{readsUnnamed: list("--files --files0"), writesUnasked: list("--suffix -S")},
	},
	rule{
		names: list("diff gdiff"),
		keeps: list("--no-dereference"),
		denied: [excesses][]string{
			runsPrograms: list("--paginate -l"),
			followsLinks: list("--recursive -r"),
		},
		valued: "FILx",
	},
	rule{
		names:  list("bat batcat"),
		denied: [excesses][]string{runsPrograms: list("--pager")},
	},
	rule{
		names:  list("tree"),
		denied: [excesses][]string{followsLinks: list("-l"), writesUnasked: list("-R")},
	},
	rule{
		names: list("file"),
		denied: [excesses][]string{
			runsPrograms:  list("--uncompress -z --uncompress-noreport -Z"),
			readsUnnamed:  list("--files-from -f"),
			writesUnasked: list("--compile -C"),
		},
	},
	rule{
		names: list(`md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum b3sum shasum cksum
			gmd5sum gsha1sum gsha224sum gsha256sum gsha384sum gsha512sum gb2sum gcksum`),
		valued: "al",
		denied: [excesses][]string{readsUnnamed: list("--check -c")},
	},
	rule{
		names: list(`strings ar nm objcopy readelf size strip ranlib addr2line as javac javadoc jar 7z 7za 7zr 7zz
			llvm-strings llvm-ar llvm-nm llvm-objcopy llvm-readelf llvm-size llvm-strip llvm-ranlib`),
		denied: [excesses][]string{runsPrograms: list("--plugin")},
		check:  namesList,
	},
	rule{
		names:  list("objdump llvm-objdump"),
		valued: "bjMm",
		// The sources that it shows are those that the file says it was made of.
		denied: [excesses][]string{runsPrograms: list("--plugin"), readsUnnamed: list("--source -S --source-comment")},
		check:  namesList,
	},
	rule{names: list("ps"), check: showsEnvironment},
	rule{names: list("setfacl"), denied: [excesses][]string{followsLinks: list("--logical -L"), writesUnasked: list("--restore")}},
	rule{
		names: list("zip"),
		keeps: list("-y -ry -yr -qry -rqy -ryq --symlinks"),
		denied: [excesses][]string{
			runsPrograms:  list("--test -T --unzip-command"),
			followsLinks:  list("--recurse-paths -r --recurse-patterns -R"),
			readsUnnamed:  list("--names-stdin -@"),
			writesUnasked: list("--move -m"),
		},
	},
	rule{
		names:  list("unzip"),
		denied: [excesses][]string{writesUnasked: list("-: -^")},
	},
	rule{
		// What curl can read, write and load grows with every release.
		names: list("curl"),
		only: list("--silent --show-error --location --include --head --verbose --request --header --data --data-raw " +
			"--data-binary --data-ascii --json --get --fail --fail-with-body --insecure --max-time --connect-timeout " +
			"--retry --retry-delay --retry-max-time --retry-connrefused --user-agent --referer --output --remote-name " +
			"--compressed --write-out --user --http1.1 --http2 --ipv4 --ipv6 --no-buffer --max-redirs --range " +
			"--continue-at --limit-rate --progress-bar --no-progress-meter --globoff --disable --cookie --version " +
			"--tlsv1.2 --tlsv1.3"),
		letters: "sSLiIvXHdGfkmAeoOwuNrCgqb046#V",
		valued:  "XHdmAeowurCb",
		check:   leavesWeb,
	},
	rule{
		names: list("wget"),
		only: list("--quiet --output-document --no-verbose --verbose --server-response --spider --continue --timeout --tries " +
			"--header --user-agent --directory-prefix --timestamping --no-clobber --no-check-certificate --recursive " +
			"--level --no-parent --page-requisites --convert-links --accept --reject --method --post-data --body-data " +
			"--max-redirect --limit-rate --wait --version"),
		letters: "qOnvcdSTtUPNrlpkHARwEV46",
		valued:  "OTtUPlARw",
		check:   leavesWeb,
	},
)

// gitSubcommands are those that run nothing but git, the hooks of a repository
// and what its configuration names. Which repository that is, the working
// directory and the paths say; one that came in a folder is as good as a
// program. Not mv, which renames into .git through a link in the repository.
var gitSubcommands = byName(
	rule{names: list("status log diff show add commit branch merge blame annotate describe rev-parse rev-list " +
		"ls-files ls-tree cat-file shortlog reflog rm apply am stash tag clean worktree range-diff " +
		"merge-base merge-tree for-each-ref name-rev show-ref show-branch diff-tree diff-index diff-files version " +
		"count-objects fsck gc sparse-checkout notes check-ignore check-attr check-mailmap check-ref-format " +
		"whatchanged cherry stripspace rerere")},
	rule{names: list("grep"), valued: "ef", denied: [excesses][]string{runsPrograms: list("-O")}},
	// The strategy a/x is the program git-merge-a/x, also where it stands in the
	// repository; merge knows its own, and pull hands it to rebase.
	rule{names: list("rebase"), valued: "SX", denied: [excesses][]string{runsPrograms: list("-x -s --strategy")}},
	rule{names: list("cherry-pick revert"), denied: [excesses][]string{runsPrograms: list("--strategy")}},
	// Its suffix stands behind a name that git makes up, and may climb from there.
	rule{names: list("format-patch"), denied: [excesses][]string{writesUnasked: list("--suffix")}},
	rule{names: list("hash-object"), denied: [excesses][]string{readsUnnamed: list("--stdin-paths")}},
	rule{names: list("bisect"), check: runsBisect},
	rule{names: list("archive"), denied: [excesses][]string{runsPrograms: list("--remote"), writesUnasked: list("-o")}},
	rule{names: list("checkout switch restore reset"), denied: [excesses][]string{runsPrograms: list("--recurse-submodules")}},
	rule{names: list("fetch"), check: namesHelper, denied: [excesses][]string{runsPrograms: list("--recurse-submodules")}},
	rule{names: list("pull"), check: namesHelper, denied: [excesses][]string{runsPrograms: list("--recurse-submodules -s --strategy")}},
	rule{names: list("push remote"), check: namesHelper},
	rule{names: list("ls-remote"), check: namesHelper, denied: [excesses][]string{runsPrograms: list("-u")}},
	rule{names: list("clone"), check: namesHelper, valued: "bo", denied: [excesses][]string{
		runsPrograms:  list("-u --config -c --template --recurse-submodules --recursive"),
		writesUnasked: list("--separate-git-dir"),
	}},
	rule{names: list("init"), denied: [excesses][]string{runsPrograms: list("--template"), writesUnasked: list("--separate-git-dir")}},
)

// reachesRepository denies paths into a repository's own folder: hooks and
// configuration there are programs.
func reachesRepository(word string) string {
	for at := 0; ; at++ {
		i := strings.IndexByte(word[at:], '.')
		if i < 0 {
			return ""
		}
		at += i
		end := at + len(".git")
		// In a cluster of options the value may begin anywhere.
		begins := at == 0 || strings.IndexByte("/=:", word[at-1]) >= 0 || isCluster(word[:at])
		if begins && end <= len(word) && strings.EqualFold(word[at:end], ".git") && (end == len(word) || word[end] == '/') {
			return "reaches into .git, where hooks and configuration are programs"
		}
	}
}

// isCluster reports whether a word that begins so may be short options.
func isCluster(start string) bool {
	return len(start) > 1 && start[0] == '-' && start[1] != '-' && !strings.ContainsAny(start, "/ ")
}

// namesHelper denies the addresses for which git runs a transport helper:
// ext::sh, and any scheme that git does not speak by itself.
func namesHelper(word string) string {
	if strings.HasPrefix(word, "-") {
		_, word, _ = strings.Cut(word, "=")
	}
	i := strings.IndexFunc(word, isNotScheme)
	if i < 0 {
		return ""
	}
	if rest := word[i:]; strings.HasPrefix(rest, "::") || strings.HasPrefix(rest, "://") && !isSpoken(word[:i]) {
		return "runs a transport helper for this address"
	}
	return ""
}

// isSpoken reports whether git needs no helper of an unknown kind for a scheme.
func isSpoken(scheme string) bool {
	switch scheme {
	case "https", "http", "ssh", "git", "file", "git+ssh", "ssh+git":
		return true
	}
	return false
}

// runsBisect denies the subcommands of bisect that run a program.
func runsBisect(word string) string {
	if word == "run" || word == "visualize" || word == "view" || word == "replay" {
		return word + " " + runsPrograms.String()
	}
	return ""
}

// isNotScheme reports whether a rune cannot be in the scheme of an address.
func isNotScheme(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+-.", r)
}

// namesHost denies archives on another host, which tar asks rsh for: a colon
// without a slash before it.
func namesHost(word string) string {
	switch {
	case strings.HasPrefix(word, "--"):
		name, value, _ := strings.Cut(word, "=")
		if !strings.HasPrefix("--file", name) {
			return ""
		}
		word = value
	case strings.HasPrefix(word, "-"):
		word = word[1:]
	}
	if i := strings.IndexAny(word, ":/"); i >= 0 && word[i] == ':' {
		return "runs rsh for an archive on another host"
	}
	return ""
}

// namesList denies a file that stands for the words in it, also behind -i, -x and -ai of 7z.
func namesList(word string) string {
	selects := len(word) > 1 && word[0] == '-' && strings.IndexByte("aixAIX", word[1]) >= 0
	if strings.HasPrefix(word, "@") || selects && strings.Contains(word, "@") {
		return clip(word) + " " + readsUnnamed.String()
	}
	return ""
}

// showsEnvironment denies the letters by which ps prints the environment of what others run,
// the gateway's secrets with it. Where a dash leads nowhere, ps reads all words once more
// without it, so that -e is one as well. A list of columns may name it too.
func showsEnvironment(word string) string {
	switch {
	case strings.Contains(word, "environ"):
		return "can print the environment of other programs by a column of that name"
	case strings.HasPrefix(word, "--"):
		return ""
	}
	for _, letter := range strings.TrimPrefix(word, "-") {
		switch {
		case letter == 'e' || letter == 'E':
			return "can print the environment of other programs with e; ps aux shows all of them without"
		case !strings.ContainsRune("aAcCdfFgGhHjklLmMnPrRsSTuvVwWxXyZ0123456789", letter):
			return "" // what takes a value, or no option at all
		}
	}
	return ""
}

// leavesWeb denies the values that mean more than text and web addresses.
func leavesWeb(word string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(word), ":")
	switch {
	case strings.HasPrefix(word, "@"), strings.HasPrefix(word, "-") && strings.Contains(word, "@"):
		return "reads a file for an @"
	case strings.Contains(word, "%output{"):
		return "%output " + writesUnasked.String()
	case numbersGlob(word):
		return "# takes the name of a file from an address"
	case strings.ContainsAny(word, "{[") && strings.Contains(word, "/"):
		return "puts addresses together from braces and brackets"
	case strings.HasPrefix(rest, "/") && scheme != "http" && scheme != "https" && strings.IndexFunc(scheme, isNotScheme) < 0:
		return "reaches more than the web by " + clip(scheme)
	}
	return ""
}

// numbersGlob reports whether curl would find #1 in the name of a file: what the
// first braces of an address stand for.
func numbersGlob(word string) bool {
	_, rest, ok := strings.Cut(word, "#")
	return ok && (rest != "" && rest[0] >= '0' && rest[0] <= '9' || numbersGlob(rest))
}
