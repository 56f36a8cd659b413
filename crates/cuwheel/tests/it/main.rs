//! Tests of the commands as a user runs them: the binary, projects in temporary directories, real environments.

mod check_wheel;
mod command_line;
mod cuda_majors;
mod develop;
mod develop_import;
mod develop_layout;
mod doctor_command;
mod doctor_corpus;
mod doctor_counterparts;
mod doctor_projects;
mod doctor_rules;
mod doctor_templates;
mod environments;
mod front_ends;
mod gpu_bundle;
mod gpu_preflight;
mod gpu_run;
mod gpu_suite;
mod isolation;
mod overlay;
mod overlay_command;
mod repair;
mod repository;
mod support;
mod test_command;
mod wheels;
