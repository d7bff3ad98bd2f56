module tidings-peers/quamina-driver

go 1.24

require quamina.net/go/quamina/v2 v2.0.2
