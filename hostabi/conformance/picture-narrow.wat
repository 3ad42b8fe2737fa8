;; Pictures without columns.
;; include guest
(data (i32.const 0x444) "\02\00\00\00\00\00\00\00\02\00\00\00")
