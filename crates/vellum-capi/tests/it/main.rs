//! The C interface as C and C++ programs meet it: its header, and programs that are built against
//! an installed library.

mod header;
mod installed;
mod pages;
mod programs;
mod tools;
mod watched;
