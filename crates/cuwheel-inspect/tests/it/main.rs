//! Tests of the readers on whole files: wheels made in memory, libraries and crates compiled here, archives of sources.

mod archive;
mod damage;
mod elf;
mod objects;
mod sdist;
mod wheel;
mod wheel_name;
