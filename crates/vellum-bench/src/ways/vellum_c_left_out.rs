//! The way `vellum-c` of a build without the feature `capi`: it has a name, and cannot run.

use std::path::Path;

use vellum::Options;

use crate::error::{Error, Result};
use crate::setting::Setting;
use crate::ways::{Prepared, Way};

const REASON: &str = "this program was built without the feature `capi`";

pub(crate) struct VellumC;

impl VellumC {
    pub(crate) fn new(_options: &Options) -> VellumC {
        VellumC
    }
}

impl Way for VellumC {
    fn probe(&self, _dir: &Path) -> std::result::Result<(), String> {
        Err(REASON.into())
    }

    fn prepare(&self, _dir: &Path, _setting: &Setting) -> Result<Box<dyn Prepared>> {
        Err(Error::failed(REASON))
    }
}
