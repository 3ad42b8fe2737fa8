;; Neither a name nor a version.
;; include guest
(data (i32.const 0x468) "\00\00\00\00\00\00\00\00")
