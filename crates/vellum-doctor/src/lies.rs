//! `doctor --lies`: does durable mean durable?

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use vellum_bench::doctor::lies::{
    Conclusion, Limits, Promises, Server, Terminal, Witness, check, file_witness, tcp_witness,
    write,
};
use vellum_command::outcome::{BadValue, Outcome, Result};
use vellum_command::output::{print, say};
use vellum_command::stdio::stdout;

use crate::args::DoctorArgs;
use crate::ending::ended_by_signals;

pub(crate) fn run(args: &DoctorArgs) -> Result<Outcome> {
    let lies = &args.lies;
    match (lies.serve, &lies.witness) {
        (Some(port), Some(path)) => serve(port, Path::new(path)),
        _ if lies.check => checked(args),
        _ => written(args),
    }
}

/// Whether a witness is another machine: its words are those of an address.
fn is_address(witness: &str) -> bool {
    let port = witness.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    matches!(port, Some(Ok(_))) && !witness.contains('/')
}

fn serve(port: u16, path: &Path) -> Result<Outcome> {
    if is_address(&path.to_string_lossy()) {
        return Err(BadValue("--serve needs a file for --witness".into()).into());
    }
    let server = Server::new(&format!("[::]:{port}"), path)
        .or_else(|_| Server::new(&format!("0.0.0.0:{port}"), path))?;
    say(format_args!("listening at {}, writing to {}", server.address()?, path.display()));
    server.run()?;
    Ok(Outcome::Good)
}

fn written(args: &DoctorArgs) -> Result<Outcome> {
    let asked = ended_by_signals()?;
    let mut witness = witness(args)?;
    let seconds = args.minutes.map(|minutes| minutes * 60).or(args.seconds);
    let time = seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let dir = args.dir.display();
    say(format_args!(
        "writing to {dir}; pull the plug, and then run `vellum doctor --lies --check`"
    ));
    let number = write(&args.dir, witness.as_mut(), Limits { time, ..Limits::default() })?;
    // A run that ends in good order is followed by no cut, as far as is known.
    witness.end()?;
    say(format_args!("{number} blocks promised, and no cut"));
    Ok(asked.signal().map_or(Outcome::Good, Outcome::EndedBy))
}

fn witness(args: &DoctorArgs) -> Result<Box<dyn Witness>> {
    Ok(match args.lies.witness.as_deref() {
        Some(address) if is_address(address) => {
            // An unknown name is reported before anything is written.
            address.to_socket_addrs().with_context(|| format!("cannot find {address}"))?;
            Box::new(tcp_witness(address)?)
        }
        Some(path) => Box::new(file_witness(&PathBuf::from(path), &args.dir)?),
        None => Box::new(Terminal::new(stdout())),
    })
}

fn checked(args: &DoctorArgs) -> Result<Outcome> {
    let promises = match (args.lies.promised, args.lies.witness.as_deref()) {
        (Some(number), _) => Promises::up_to(number),
        (None, Some(address)) if is_address(address) => Promises::asked(address, &args.dir)?,
        (None, Some(path)) => Promises::read(Path::new(path), &args.dir)?,
        (None, None) => {
            let text = "--check needs what was promised: --witness or --promised";
            return Err(BadValue(text.into()).into());
        }
    };
    let checked = check(&args.dir, &promises, args.lies.was_cut)?;
    print(&checked.text())?;
    Ok(match checked.conclusion {
        Conclusion::Honest => Outcome::Good,
        Conclusion::Lied => Outcome::NotGoodEnough,
        Conclusion::Nothing(_) => Outcome::Marginal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_a_file() {
        assert!(is_address("other:7007") && is_address("[::1]:7007") && is_address("10.0.0.1:1"));
        for path in ["promises", "/mnt/a:1", "./a:1", "a:b"] {
            assert!(!is_address(path), "{path}");
        }
    }
}
