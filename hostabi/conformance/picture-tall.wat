;; Pictures of more than 16,384 rows.
;; include guest
(data (i32.const 0x444) "\02\00\00\00\04\00\00\00\01\40\00\00")
