"""Who issued a document, in one spelling: providers write `USA`, `US-CA`, `California`, `US_CA`.

Countries: ISO 3166-1. States, the district and the territories of the United States: the two-letter
codes of the USPS (Publication 28, appendix B), which those of ISO 3166-2:US are too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

US: Final = "US"

_ALPHA_3: Final = """
ABWAW AFGAF AGOAO AIAAI ALAAX ALBAL ANDAD AREAE ARGAR ARMAM ASMAS ATAAQ ATFTF ATGAG AUSAU AUTAT
AZEAZ BDIBI BELBE BENBJ BESBQ BFABF BGDBD BGRBG BHRBH BHSBS BIHBA BLMBL BLRBY BLZBZ BMUBM BOLBO
BRABR BRBBB BRNBN BTNBT BVTBV BWABW CAFCF CANCA CCKCC CHECH CHLCL CHNCN CIVCI CMRCM CODCD COGCG
COKCK COLCO COMKM CPVCV CRICR CUBCU CUWCW CXRCX CYMKY CYPCY CZECZ DEUDE DJIDJ DMADM DNKDK DOMDO
DZADZ ECUEC EGYEG ERIER ESHEH ESPES ESTEE ETHET FINFI FJIFJ FLKFK FRAFR FROFO FSMFM GABGA GBRGB
GEOGE GGYGG GHAGH GIBGI GINGN GLPGP GMBGM GNBGW GNQGQ GRCGR GRDGD GRLGL GTMGT GUFGF GUMGU GUYGY
HKGHK HMDHM HNDHN HRVHR HTIHT HUNHU IDNID IMNIM INDIN IOTIO IRLIE IRNIR IRQIQ ISLIS ISRIL ITAIT
JAMJM JEYJE JORJO JPNJP KAZKZ KENKE KGZKG KHMKH KIRKI KNAKN KORKR KWTKW LAOLA LBNLB LBRLR LBYLY
LCALC LIELI LKALK LSOLS LTULT LUXLU LVALV MACMO MAFMF MARMA MCOMC MDAMD MDGMG MDVMV MEXMX MHLMH
MKDMK MLIML MLTMT MMRMM MNEME MNGMN MNPMP MOZMZ MRTMR MSRMS MTQMQ MUSMU MWIMW MYSMY MYTYT NAMNA
NCLNC NERNE NFKNF NGANG NICNI NIUNU NLDNL NORNO NPLNP NRUNR NZLNZ OMNOM PAKPK PANPA PCNPN PERPE
PHLPH PLWPW PNGPG POLPL PRIPR PRKKP PRTPT PRYPY PSEPS PYFPF QATQA REURE ROURO RUSRU RWARW SAUSA
SDNSD SENSN SGPSG SGSGS SHNSH SJMSJ SLBSB SLESL SLVSV SMRSM SOMSO SPMPM SRBRS SSDSS STPST SURSR
SVKSK SVNSI SWESE SWZSZ SXMSX SYCSC SYRSY TCATC TCDTD TGOTG THATH TJKTJ TKLTK TKMTM TLSTL TONTO
TTOTT TUNTN TURTR TUVTV TWNTW TZATZ UGAUG UKRUA UMIUM URYUY USAUS UZBUZ VATVA VCTVC VENVE VGBVG
VIRVI VNMVN VUTVU WLFWF WSMWS YEMYE ZAFZA ZMBZM ZWEZW
"""
_COUNTRIES: Final[Mapping[str, str]] = {
    **{pair[:3]: pair[3:] for pair in _ALPHA_3.split()},
    **{pair[3:]: pair[3:] for pair in _ALPHA_3.split()},
    **dict.fromkeys(
        (
            "UNITEDSTATES",
            "THEUNITEDSTATES",
            "UNITEDSTATESOFAMERICA",
            "THEUNITEDSTATESOFAMERICA",
            "ESTADOSUNIDOS",
        ),
        US,
    ),
}
_STATES: Final[Mapping[str, str]] = {
    "ALABAMA": "AL",
    "ALASKA": "AK",
    "ARIZONA": "AZ",
    "ARKANSAS": "AR",
    "CALIFORNIA": "CA",
    "COLORADO": "CO",
    "CONNECTICUT": "CT",
    "DELAWARE": "DE",
    "DISTRICTOFCOLUMBIA": "DC",
    "WASHINGTONDC": "DC",
    "FLORIDA": "FL",
    "GEORGIA": "GA",
    "HAWAII": "HI",
    "IDAHO": "ID",
    "ILLINOIS": "IL",
    "INDIANA": "IN",
    "IOWA": "IA",
    "KANSAS": "KS",
    "KENTUCKY": "KY",
    "LOUISIANA": "LA",
    "MAINE": "ME",
    "MARYLAND": "MD",
    "MASSACHUSETTS": "MA",
    "MICHIGAN": "MI",
    "MINNESOTA": "MN",
    "MISSISSIPPI": "MS",
    "MISSOURI": "MO",
    "MONTANA": "MT",
    "NEBRASKA": "NE",
    "NEVADA": "NV",
    "NEWHAMPSHIRE": "NH",
    "NEWJERSEY": "NJ",
    "NEWMEXICO": "NM",
    "NEWYORK": "NY",
    "NORTHCAROLINA": "NC",
    "NORTHDAKOTA": "ND",
    "OHIO": "OH",
    "OKLAHOMA": "OK",
    "OREGON": "OR",
    "PENNSYLVANIA": "PA",
    "RHODEISLAND": "RI",
    "SOUTHCAROLINA": "SC",
    "SOUTHDAKOTA": "SD",
    "TENNESSEE": "TN",
    "TEXAS": "TX",
    "UTAH": "UT",
    "VERMONT": "VT",
    "VIRGINIA": "VA",
    "WASHINGTON": "WA",
    "WESTVIRGINIA": "WV",
    "WISCONSIN": "WI",
    "WYOMING": "WY",
    "AMERICANSAMOA": "AS",
    "GUAM": "GU",
    "NORTHERNMARIANAISLANDS": "MP",
    "COMMONWEALTHOFTHENORTHERNMARIANAISLANDS": "MP",
    "PUERTORICO": "PR",
    "VIRGINISLANDS": "VI",
    "USVIRGINISLANDS": "VI",
    "VIRGINISLANDSOFTHEUNITEDSTATES": "VI",
}
_CODES: Final = frozenset(_STATES.values())
"""Where licences are issued: not the military addresses AA, AE and AP."""
_TERRITORIES: Final = frozenset({"AS", "GU", "MP", "PR", "VI"})
"""Of the United States, and with a country code of their own: some providers write that."""
_OF_THE_US: Final = re.compile(r"\s*U\.?\s?S\.?(?:\s?A\.?)?[\s_,:-]+(?=\S)")
"""What stands before the state in `US-CA`, `US_CA` and `USA CA`; not in `U.S. Virgin Islands`
alone, which is a name by itself."""
_STYLES: Final = ("STATEOF", "COMMONWEALTHOF", "TERRITORYOF")


def words(text: str) -> str:
    """Letters and digits only, compatible forms and capitals folded: `Driver's` is `DRIVERS`."""
    folded = unicodedata.normalize("NFKC", text).upper()
    return "".join(char for char in folded if char.isalnum())


def issuer(country: str | None, region: str | None) -> tuple[str, str | None] | None:
    """The country, and the part of it; None without a country.

    A country is its alpha-2 code, or what was given, without signs, if that is none that is known.
    A state or territory of the United States is its two-letter code; None if it is not told, or
    could be any. A region elsewhere is what was given, without signs.
    """
    given = words(country or "")
    if not given:
        return None
    known = _COUNTRIES.get(given, given)
    if _STATES.get(given) in _TERRITORIES:
        known = _STATES[given]
    if known in _TERRITORIES:
        return US, known
    if known == US:
        return US, _state(region or "")
    return known, words(region or "") or None


def _state(region: str) -> str | None:
    upper = unicodedata.normalize("NFKC", region).upper()
    for spelled in (upper, _OF_THE_US.sub("", upper, count=1)):
        found = _code(words(spelled))
        if found is not None:
            return found
    return None


def _code(given: str) -> str | None:
    if given in _CODES:
        return given
    for style in _STYLES:
        if given.startswith(style) and given not in _STATES:
            given = given.removeprefix(style)
    return _STATES.get(given)
