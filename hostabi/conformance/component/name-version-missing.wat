;; Neither a name nor a version.
;; include guest
;; include slot
(data (i32.const 0x430) "\00\00\00\00\00\00\00\00")
