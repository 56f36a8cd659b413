//! The folders with the headers of Python and NumPy, checked before the compiler sees them.

use std::path::PathBuf;

use crate::Error;
use crate::environment::{Lookup, NUMPY_INCLUDE, PYTHON_INCLUDE};
use crate::interpreter::{self, Answer, NumpyAnswer};

/// Folders for the compiler to search. Each holds what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) python: Vec<PathBuf>,
    pub(crate) numpy: PathBuf,
}

impl Headers {
    /// Finds the headers by the rules at the top of the crate's documentation.
    pub(crate) fn find(lookup: Lookup<'_>) -> Result<Self, Error> {
        let headers = match (lookup(NUMPY_INCLUDE), lookup(PYTHON_INCLUDE)) {
            (Some(numpy), Some(python)) => Self { python: vec![python.into()], numpy: numpy.into() },
            (None, None) => Self::from_answer(interpreter::ask(lookup)?)?,
            (Some(_), None) => return Err(Error::OneIncludeFolder { set: NUMPY_INCLUDE, missing: PYTHON_INCLUDE }),
            (None, Some(_)) => {
                // Tools that know the folders set this one alone if there is no NumPy, and then that is what to say.
                Self::from_answer(interpreter::ask(lookup)?)?;
                return Err(Error::OneIncludeFolder { set: PYTHON_INCLUDE, missing: NUMPY_INCLUDE });
            }
        };
        headers.check()
    }

    fn from_answer(answer: Answer) -> Result<Self, Error> {
        let Answer { interpreter, python, numpy } = answer;
        match numpy {
            NumpyAnswer::Include(numpy) => Ok(Self { python, numpy }),
            NumpyAnswer::Missing => Err(Error::NumpyMissing { interpreter }),
            NumpyAnswer::Broken(reason) => Err(Error::NumpyBroken { interpreter, reason }),
        }
    }

    fn check(self) -> Result<Self, Error> {
        let looked_for: Vec<_> = self.python.iter().map(|folder| folder.join("Python.h")).collect();
        if !looked_for.iter().any(|header| header.is_file()) {
            return Err(Error::PythonHeadersMissing { looked_for });
        }
        // NumPy 2.0 was the first to have this header.
        let header = self.numpy.join("numpy").join("npy_2_compat.h");
        if !header.is_file() {
            return Err(Error::NumpyHeadersMissing { header });
        }
        Ok(self)
    }

    /// All folders, those of NumPy first.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.numpy).chain(&self.python)
    }
}
