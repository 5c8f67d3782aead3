//! The ends of the help texts: examples and exit codes.

pub(super) const VELLUM: &str = "\
Exit codes:
  0  good
  1  failed
  2  usage: the command line is wrong, or contradicts the log
  3  damage found
  4  records may be missing: an unfinished record is in the way, and its writer is stopped or cannot
     be checked
  5  a disk is marginal for a program (doctor)
  6  a disk is not good enough for a program (doctor)

Examples:
  vellum demo                                         see it work
  echo hello | vellum append --layout text app.log    append a line
  vellum cat app.log                                  print all lines
  grep hello app.log                                  for other programs it is a text file
  vellum tail --follow app.log                        print new ones as they come";

pub(super) const APPEND: &str = "\
Examples:
  journalctl -f | vellum append --layout text app.log
  app 2>&1 | vellum append --rotate-every 1d --retain-age 30d app.log
  app 2>&1 | vellum append --rotate-bytes 10M --retain-bytes 1G --on-full drop app.log
  journalctl -f | vellum append --envelope events.log    # framed, with the time of each record
  find . -print0 | vellum append -0 files.log
  echo hello | vellum append --ack app.log    # prints the LSN, as 67108864
  vellum append --commit every --ack orders.log < orders.json
  journalctl -f | vellum append --commit-interval 100ms events.log";

pub(super) const CAT: &str = "\
Examples:
  vellum cat app.log | grep error
  vellum cat --since today app.log web.log
  vellum cat --follow --json app.log | jq -r .payload
  vellum cat --from 67108864 --to 67109120 app.log
  vellum cat --since 10min app.log
  vellum cat --since 2026-11-23 --until '2026-11-23 12:00' app.log
  vellum cat -0 files.log | xargs -0 ls -l
  vellum cat --raw commands.log | redis-cli --pipe";

pub(super) const TAIL: &str = "\
Examples:
  vellum tail app.log
  vellum tail -100f app.log | grep error
  vellum tail -n 0 -F app.log | shipper
  vellum tail --since yesterday -f app.log
  vellum tail -n 0 -f --durable orders.wal | shipper
  vellum tail -n 0 -f --json app.log | jq -r .payload
  vellum tail --cursor shipper app.log > batch
  vellum tail --cursor shipper --ack -f --json app.log < acks | shipper > acks";

pub(super) const ROTATE: &str = "\
Examples:
  vellum rotate app.log
  vellum rotate app.log && gzip \"$(ls app.log.d/*.log | tail -n 2 | head -n 1)\"";

pub(super) const STAT: &str = "\
Examples:
  vellum stat app.log
  vellum stat --watch app.log
  vellum stat /var/log/app/                   # all logs below, a line for each
  vellum stat --json app.log | jq .published
  vellum stat --json app.log | jq .commits.sync_micros_p99
  vellum stat --prometheus app.log > app.prom.new && mv app.prom.new app.prom";

pub(super) const VERIFY: &str = "\
Examples:
  vellum verify app.log && echo whole
  vellum verify --json app.log | jq '.damage[]'";

pub(super) const TRIM: &str = "\
Examples:
  vellum trim app.log --before 67109120
  vellum trim app.log --before $(vellum stat --json app.log | jq .published)    # drop everything
  vellum trim orders.log --before 67109120 --spare-segments-max 0    # the disk gets all of it back";

pub(super) const PREPARE: &str = "\
Examples:
  vellum prepare orders.log
  vellum prepare --segments 8 orders.log
  vellum prepare --measure always orders.log
  vellum prepare --release orders.log";

pub(super) const CHECKPOINT: &str = "\
Examples:
  vellum checkpoint orders.log
  vellum checkpoint orders.log 67109120
  vellum trim orders.log --before $(vellum checkpoint orders.log)";

pub(super) const CURSOR: &str = "\
Examples:
  vellum cursor app.log
  vellum cursor app.log shipper --set begin --hold --max-held 10GiB
  vellum cursor --json app.log shipper | jq '.[].lag_bytes'
  vellum cursor app.log shipper --delete";

pub(super) const TRUNCATE: &str = "\
Examples:
  vellum truncate --dry-run raft.log 67109120
  vellum truncate raft.log 67109120";

pub(super) const REPAIR: &str = "\
Examples:
  vellum repair broken.log saved.log
  vellum repair --json broken.log saved.log | jq .records";

pub(super) const BENCH: &str = "\
Examples:
  vellum bench all --quick
  vellum bench append --saturate
  vellum bench commit --bytes 256,4096 --threads 1,4,16
  vellum bench sync --html result.html
  vellum bench write --quick";

pub(super) const BENCH_ALL: &str = "\
Examples:
  vellum bench all --quick
  vellum bench all --dir /mnt/data --json result.json --html result.html
  vellum bench all --quick --fs ext4,xfs,btrfs,btrfs-raid0";

pub(super) const BENCH_PUBLISH: &str = "\
Examples:
  vellum bench publish --list    # what is measured, and how long it takes
  vellum bench publish --only append,append-sizes
  vellum bench publish --quick";

pub(super) const BENCH_REPORT: &str = "\
Examples:
  vellum bench report append.json sync.json --html report.html
  vellum bench report result.json --markdown result.md";

pub(super) const ADVISE: &str = "\
Examples:
  vellum advise /var/lib/app
  vellum advise --quick --for wal /mnt/data
  vellum advise --write /var/lib/app    # logs created there follow it
  vellum advise --seconds 300 --json advice.json .
  vellum advise --json - . | jq -r '.recommendations[] | .purpose, .way, .reason'";

pub(super) const BENCH_COMPARE: &str = "\
Exit codes:
  0  compared
  1  failed, or --fail-on-slower found something
  2  usage

Examples:
  vellum bench commit --rounds 7 --json before.json    # then change something
  vellum bench commit --rounds 7 --json after.json
  vellum bench compare --changed before.json after.json
  vellum bench compare --fail-on-slower 10 before.json after.json
  vellum bench compare --json - before.json after.json | jq '.rows[].figures[] | .verdict'";

pub(super) const DEMO: &str = "\
Examples:
  vellum demo
  vellum demo --layout text /var/tmp/demo    # then look at the log with grep, or vellum cat";

pub(super) const COMPLETIONS: &str = "\
Examples:
  vellum completions bash > ~/.local/share/bash-completion/completions/vellum
  vellum completions zsh > ~/.zfunc/_vellum
  vellum completions fish > ~/.config/fish/completions/vellum.fish";

pub(super) const MAN: &str = "\
Examples:
  vellum man | man -l -
  vellum man ~/.local/share/man/man1";
