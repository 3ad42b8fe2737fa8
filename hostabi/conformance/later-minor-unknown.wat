;; A higher minor version, and a type that version 1.0 does not have: the host says that it is too old.
;; include guest
(data (i32.const 0x406) "\07")
(data (i32.const 0x506) "\0b")
(data (i32.const 0x706) "\0b")
