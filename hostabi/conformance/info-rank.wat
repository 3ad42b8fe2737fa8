;; Info is one figure or a list of them: of rank 2 it is refused.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\09\00\00\00\00\00\08\02\02\00\00\00\02\00\00\00\03\00\00\00")
