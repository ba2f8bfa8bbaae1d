"""Layout of DNS messages: the fixed parts of header, question, records and OPT (RFC 1035 section 4, RFC 6891).

Every structure is defined here once, for the decoders, the encoder and all that reads single octets of a message. Sizes
are constants, too, because reading `Struct.size` costs more on the hot path.
"""

from struct import Struct
from typing import Final

HEADER: Final = Struct("!HHHHHH")  # id, flags, and the numbers of questions, answer, authority and additional records
HEADER_WITHOUT_ID: Final = Struct("!HHHHH")
HEADER_SIZE: Final = 12
COUNTS_AT: Final = 6  # offset of ANCOUNT, NSCOUNT and ARCOUNT
RECORD_COUNTS: Final = Struct("!HHH")

QUESTION_TAIL: Final = Struct("!HH")  # type, class
QUESTION_TAIL_SIZE: Final = 4

RECORD_HEAD: Final = Struct("!HHIH")  # after the owner: type, class, TTL, RDLENGTH
RECORD_HEAD_SIZE: Final = 10
ROOT_RECORD_HEAD: Final = Struct("!BHHIH")  # with the root as owner, as in OPT: 0, and the same
ROOT_RECORD_HEAD_SIZE: Final = 11
POINTER_RECORD_HEAD: Final = Struct("!HHHIH")  # with a pointer as owner: the pointer, and the same
POINTER_RECORD_HEAD_SIZE: Final = 12  # no record is shorter but for its RDATA, except at the root
OPTION_HEAD: Final = Struct("!HH")  # an EDNS option's code and length
OPTION_HEAD_SIZE: Final = 4
SOA_NUMBERS: Final = Struct("!IIIII")  # serial, refresh, retry, expire, minimum (RFC 1035 section 3.3.13)

POINTER: Final = 0xC000  # the bits that make an offset a compression pointer (RFC 1035 section 4.1.4)
POINTER_OCTET: Final = 0xC0  # the same in the first octet, which is otherwise the length of a label
MAX_OFFSET: Final = 0x3FFF  # the greatest that a pointer can have
MAX_POINTERS: Final = 127  # in a row: a name cannot have more labels
QNAME_POINTER: Final = POINTER | HEADER_SIZE  # to the question's name

DNSSEC_OK: Final = 0x8000  # the DO bit in the TTL field of OPT (RFC 3225 section 3)
MIN_UDP_PAYLOAD: Final = 512  # RFC 6891 section 6.2.3: smaller values mean 512
MAX_MESSAGE: Final = 0xFFFF  # octets, also of RDATA: the length over TCP has 16 bits (RFC 1035 section 4.2.2)
