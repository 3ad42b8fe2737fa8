;; A tensor of an unknown role, neither optional nor critical, in an unknown type: the host cannot give it memory.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\84\03\00\00\00\00\c8\00\02\00\00\00")
