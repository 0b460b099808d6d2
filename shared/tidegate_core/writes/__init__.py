"""The writers: every conditional write of tidegate is built here, each condition beside the invariant that it keeps."""
