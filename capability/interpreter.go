package capability

import (
	"slices"
	"strings"
)

// needsPatterns reports whether a program is an interpreter, a wrapper or an
// editor that runs what its arguments say, so that its name alone bounds
// nothing.
func needsPatterns(cmd string) bool {
	name := programName(cmd)
	base := strings.TrimRight(name, "0123456789.-")
	last := base[strings.LastIndexByte(base, '-')+1:] // of a compiler's name with its target
	return slices.Contains(interpreters, name) || slices.Contains(interpreters, unversioned(name)) || slices.Contains(compilers, last) ||
		slices.Contains(compilers, name)
}

// compilers run the programs that their options name, or read the files that a source does.
var compilers = list(`
	gcc g++ cc c++ c89 c99 cpp clang clang++ ld ld.bfd ld.gold ld.lld lld mold as tcc rustc javac javadoc kotlinc scalac
	windres dlltool gfortran gccgo gdc dmd ldc2 nvcc fpc protoc xsltproc prove diff3 sdiff pydoc pydoc3 ffmpeg ffprobe ffplay
`)

// runsProject reports whether a program is there to run code of the project it
// works on: whoever may write there decides what it does, and the sandbox of the
// operating system is the only fence.
func runsProject(cmd string) bool {
	return slices.Contains(projectRunners, unversioned(programName(cmd)))
}

// interpreters are shells; programs that run their arguments, here or elsewhere;
// languages and compilers; editors and pagers, which have a command for a shell;
// package managers and version control whose options and hooks are programs.
var interpreters = list(`
	sh bash rbash dash zsh ksh mksh oksh yash fish csh tcsh ash posh elvish nu xonsh rc es pwsh powershell cmd
	command bash-static zsh-static busybox busybox-static busybox.static toybox

	env xargs nohup nice ionice timeout stdbuf setsid setarch linux32 linux64 taskset chrt numactl flock time
	watch script unbuffer expect rlwrap setpriv capsh prlimit choom fakeroot proot firejail bwrap runuser su sudo
	sudoedit doas pkexec run0 gosu su-exec dbus-run-session dbus-launch chroot unshare nsenter ip strace ltrace
	perf gdb gdbserver lldb valgrind rr bpftrace ld.so ld-linux ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-musl
	ld-musl-x86_64.so.1 parallel entr inotifywait tmux screen dtach abduco start-stop-daemon systemd-run systemctl
	at batch crontab run-parts runcon run-mailcap xdg-open open launchctl direnv mise asdf nix nix-shell npx bunx
	pnpx uvx pipx corepack pyenv rbenv exec eval source builtin xvfb-run catchsegv logrotate tcpdump nmap patch
	cpio pax ldd openssl xterm sg newgrp cpulimit torsocks proxychains chronic ifne mispipe vipe vidir hyperfine watchexec
	systemd-cat systemd-inhibit systemd-nspawn aa-exec openvt pexec torify setlock softlimit multitime genie grc ksu
	service rsh rlogin sshfs ssh-copy-id openvpn pidstat scrot xdotool msgfilter distcc ccache sccache icecc
	nodemon concurrently cross-env env-cmd nyc c8 foreman rustup honcho envdir chpst op sops doppler infisical aws-vault
	chamber teller dotenvx pm2 forever lerna volta fnm npm-run-all conda mamba micromamba pixi py-spy memray reflex dlv
	websocat wine wine64 mono mksquashfs xorriso dar unison rdiff-backup duplicity cvs cloc ugrep ug sox exim exim4 msmtp

	pandoc groff troff gs ghostscript exiftool rename prename file-rename rename.ul mmv mlr fzf aria yt-dlp youtube-dl rclone
	restic borg qjs d8 duk mujs jjs jrunscript slsh sash runscript nim crystal dart ghc gimp ginsh luatex xetex latexmk dvips
	nroff pic cobc bundler byebug pry pdb perlbug cpan cowsay cowthink easy_install pylint coverage ansible puppet knife
	rails fab msfconsole sqlmap volatility gtester esno jiti vite-node babel-node coffee zx bpython ptpython ipdb pudb
	kernprof scalene streamlit flask gunicorn uvicorn celery papermill thor rackup psysh drush wp evcxr rust-script wrk
	maxima fx jello mpv tshark wireshark sqlplus sqlcmd usql pgcli mycli litecli clickhouse clickhouse-local
	asciidoctor asciidoc a2x rst2html mdbook doxygen quarto plantuml tectonic blender inkscape povray lilypond vlc
	clickhouse-client soffice libreoffice wkhtmltopdf chromium chromium-browser google-chrome

	ssh ssh-agent ssh-keygen sshpass scp sftp rsync mosh autossh socat nc ncat netcat telnet ftp lftp docker
	podman nerdctl ctr crictl kubectl helm oc lxc incus vagrant docker-compose podman-compose docker.io

	awk gawk mawk nawk original-awk sed gsed perl python pypy pythonw ipython jupyter ruby irb jruby node nodejs
	deno bun tsx ts-node php phpdbg lua luajit texlua tclsh wish rscript r julia octave scala groovy kotlin jshell
	java clojure clj bb erl elixir iex guile racket sbcl clisp ghci runghc runhaskell ocaml swipl osascript
	gnuplot m4 dc sqlite mysql mariadb psql mongo mongosh duckdb tex latex pdftex pdflatex xelatex lualatex gcc
	g++ cc c++ clang clang++ cpp ld convert magick mogrify identify composite montage
	compare conjure stream import display animate gm yq

	ed red ex vi vim view vimdiff rvim vim.basic vim.tiny vim.nox nvim nvi elvis emacs emacs-nox emacsclient nano
	pico rnano editor sensible-editor pager sensible-pager sensible-browser www-browser joe mg micro helix hx kak
	mc mcedit less lesspipe zless more most pg man info pinfo lynx elinks links w3m mutt mail mailx tig lazygit
	vigr vipw rview ranger ncdu iftop ispell zathura smbclient psftp virsh tdbtool tasksh rtorrent tmate

	apt apt-get aptitude dpkg yum dnf rpm zypper apk pacman snap brew port gem hg svn jj bzr fossil p4 gh glab hub
	gpg
`)

var projectRunners = list(`
	make gmake bmake ninja cmake ctest meson scons bazel bazelisk buck gradle gradlew mvn mvnw ant sbt lein go npm
	pnpm yarn cargo uv poetry pdm hatch pip pipenv tox nox pytest rake bundle composer dotnet msbuild mix rebar
	stack cabal zig swift just task tsc jest vitest mocha eslint prettier webpack vite rollup turbo nx terraform
	tofu ansible-playbook pre-commit
`)
