//! Tests of the readers on whole files: wheels made in memory, libraries and crates compiled here, archives of sources.

mod archive;
mod corpus;
mod counterparts;
mod damage;
mod elf;
mod fatbin;
mod gpu_code;
mod large;
mod native;
mod objects;
mod rules;
mod sdist;
mod wheel;
mod wheel_name;
