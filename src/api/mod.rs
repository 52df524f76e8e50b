//! What `preloom.h` declares.
