;; Pictures of 16,384 rows and columns, the most that there are: a host may show none.
;; include guest
(data (i32.const 0x444) "\02\00\00\00\00\40\00\00\00\40\00\00")
