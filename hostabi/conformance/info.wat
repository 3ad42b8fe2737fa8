;; Info that is not optional: a host that does not gather it refuses the guest by the role's name.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\09\00\00\00\00\00\08\00\02\00\00\00")
