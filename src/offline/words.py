"""Vocabulary of the offline judge: tables of English and Medicare words, no logic.

A token that begins with `@` is a program, a part, a kind of plan or a period. It has no synonyms.
"""

from __future__ import annotations

import re

STATES = re.compile(
    r"\b(?:Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|"
    r"Idaho|Illinois|"
    r"Indiana|Iowa|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|"
    r"Montana|Nebraska|Nevada|New (?:Hampshire|Jersey|Mexico|York)|(?:North|South) (?:Carolina|Dakota)|Ohio|Oklahoma|"
    r"Oregon|Pennsylvania|Rhode Island|Tennessee|Texas|Utah|Vermont|Virginia|Washington|West Virginia|"
    r"Wisconsin|Wyoming)\b"
)


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Phrases that become one or more tokens before words are read. Hyphens are already spaces.
PHRASES: dict[str, str] = {
    "medicare advantage open enrollment period": "@maoep", "medicare advantage open enrollment": "@maoep",
    "ma open enrollment period": "@maoep", "ma open enrollment": "@maoep", "ma oep": "@maoep",
    "medigap open enrollment period": "@medigap @mgoep", "medigap open enrollment": "@medigap @mgoep",
    "initial enrollment period": "@iep", "initial enrollment window": "@iep", "initial enrollment": "@iep",
    "general enrollment period": "@gep", "general enrollment": "@gep",
    "special enrollment period": "@sep", "special enrollment periods": "@sep", "special enrollment": "@sep",
    "annual open enrollment period": "@aep", "annual open enrollment": "@aep", "annual enrollment period": "@aep",
    "annual election period": "@aep", "open enrollment period": "@aep", "fall open enrollment": "@aep",
    "open enrollment": "@aep", "yearly open enrollment": "@aep", "annual enrollment": "@aep",
    "medicare advantage": "@ma", "advantage plan": "@ma plan", "advantage plans": "@ma plan", "part c": "@ma",
    "ma plan": "@ma plan", "ma plans": "@ma plan", "ma pd": "@ma drug", "mapd": "@ma drug",
    "original medicare": "@orig medicare", "traditional medicare": "@orig medicare",
    "regular medicare": "@orig medicare", "fee for service medicare": "@orig medicare",
    "original fee for service": "@orig",
    "parts a and b": "@a @b", "part a and part b": "@a @b", "part a and b": "@a @b", "parts a & b": "@a @b",
    "part a or b": "@a @b", "parts b and d": "@b @d", "part a": "@a", "part b": "@b", "part d": "@d",
    "prescription drug plan": "@d drug plan", "prescription drug plans": "@d drug plan",
    "drug plan": "@d drug plan", "drug plans": "@d drug plan", "pdp": "@d drug plan", "pdps": "@d drug plan",
    "medicare supplement insurance": "@medigap", "medicare supplement": "@medigap", "medicare supplements": "@medigap",
    "supplemental insurance": "@medigap", "supplement plan": "@medigap plan", "supplement plans": "@medigap plan",
    "supplement policy": "@medigap plan", "supplement policies": "@medigap plan", "medigap": "@medigap",
    "medigaps": "@medigap",
    "qualified medicare beneficiary": "@qmb", "qmb": "@qmb", "qmbs": "@qmb",
    "specified low income medicare beneficiary": "@slmb", "slmb": "@slmb",
    "qualifying individual": "@qi", "qualified individual": "@qi", "qi": "@qi", "qi 1": "@qi",
    "qualified disabled and working individuals": "@qdwi", "qdwi": "@qdwi",
    "medicare savings programs": "@msp", "medicare savings program": "@msp", "msp": "@msp", "msps": "@msp",
    "savings program": "@msp", "savings programs": "@msp",
    "extra help": "@lis", "low income subsidy": "@lis", "lis": "@lis",
    "dual eligible special needs plan": "@dsnp plan", "dual eligible special needs plans": "@dsnp plan",
    "special needs plan": "@dsnp plan", "special needs plans": "@dsnp plan", "d snp": "@dsnp plan",
    "d snps": "@dsnp plan", "dsnp": "@dsnp plan", "dsnps": "@dsnp plan", "snp": "@dsnp plan", "snps": "@dsnp plan",
    "hmo": "@hmo", "hmos": "@hmo", "ppo": "@ppo", "ppos": "@ppo", "cobra": "@cobra", "irmaa": "@irmaa",
    "income related monthly adjustment amount": "@irmaa", "income related adjustment": "@irmaa",
    "medicaid": "@medicaid", "medi cal": "@medicaid",
    "state health insurance assistance program": "@ship", "state health insurance assistance programs": "@ship",
    "social security administration": "@ssa", "social security": "@ssa", "ssa": "@ssa",
    "medicare prescription payment plan": "@mppp", "prescription payment plan": "@mppp",
    "sign up": "enroll", "signs up": "enroll", "signing up": "enroll", "signed up": "enroll", "enrolled": "enroll",
    "pay for": "cover", "pays for": "cover", "paid for": "cover", "paying for": "cover", "foot the bill": "cover",
    "take effect": "begin", "takes effect": "begin", "kick in": "begin", "kicks in": "begin",
    "out of pocket": "oop", "prescription drugs": "drug", "prescription drug": "drug",
    "out of network": "outnet", "outside the network": "outnet", "outside the plan network": "outnet",
    "outside your plan network": "outnet", "outside their network": "outnet", "outside its network": "outnet",
    "outside of the network": "outnet", "outside your network": "outnet", "non network": "outnet",
    "in network": "innet", "inside the network": "innet",
    "prior authorization": "priorauth", "prior authorisation": "priorauth", "prior approval": "priorauth",
    "preauthorization": "priorauth", "pre authorization": "priorauth", "advance approval": "priorauth",
    "approval in advance": "priorauth", "pre approval": "priorauth", "preapproval": "priorauth",
    "long term care": "ltc", "longterm care": "ltc", "nursing home care": "ltc", "nursing home": "ltc",
    "nursing homes": "ltc", "custodial care": "ltc", "assisted living": "ltc", "long term nursing care": "ltc",
    "long term services and supports": "ltc", "custodial": "ltc",
    "skilled nursing facility": "snf", "skilled nursing facilities": "snf", "skilled nursing": "snf",
    "group health plan": "employer plan", "employer group plan": "employer plan", "workplace plan": "employer plan",
    "medical underwriting": "underwrite", "health questions": "underwrite", "health history": "underwrite",
    "preexisting conditions": "underwrite", "pre existing conditions": "underwrite",
    "health problems": "underwrite", "medical questions": "underwrite", "health status": "underwrite",
    "per month": "monthly", "a month": "monthly", "each month": "monthly", "every month": "monthly",
    "per year": "yearly", "a year": "yearly", "each year": "yearly", "every year": "yearly",
    "per quarter": "quarterly", "a quarter": "quarterly", "each quarter": "quarterly", "every quarter": "quarterly",
    "per day": "daily", "a day": "daily", "each day": "daily", "every day": "daily",
    "for life": "lifelong", "for the rest of your life": "lifelong", "as long as you have": "lifelong",
    "for as long as you have": "lifelong", "the rest of your life": "lifelong",
    "stand alone": "separate", "on its own": "separate", "drug list": "formulary", "list of covered drugs": "formulary",
    "stop working": "stopwork", "stops working": "stopwork", "leave your job": "stopwork", "job ends": "stopwork",
    "employment ends": "stopwork", "work ends": "stopwork", "end of employment": "stopwork",
    "secondary payer": "pay second", "primary payer": "pay first", "is primary": "pay first",
    "is secondary": "pay second", "pays primary": "pay first", "pays secondary": "pay second",
    "donut hole": "gap", "doughnut hole": "gap", "coverage gap": "gap",
    "of age": "", "years old": "", "year old": "", "at least": "", "health insurance": "insurance",
    "come with": "include", "comes with": "include", "built in": "include", "first come first served": "firstcome",
    "no longer": "not", "any longer": "", "anymore": "", "any more": "", "just like": "like", "no one": "nobody",
    "with no": "without", "costs nothing": "free", "cost nothing": "free", "at no cost": "free", "no cost": "free",
    "free of charge": "free", "for free": "free", "no charge": "free", "pay nothing": "free", "pays nothing": "free",
    "as high as": "limit", "at most": "limit", "as much as": "limit",
    "at the same time": "together", "simultaneously": "together", "alongside": "together",
    "whichever comes first": "whicheverfirst", "whichever is earlier": "whicheverfirst",
    "whichever happens first": "whicheverfirst", "whichever is first": "whicheverfirst",
    "whichever comes last": "whicheverlast", "whichever is later": "whicheverlast",
    "whichever comes later": "whicheverlast", "whichever happens last": "whicheverlast",
    "first of the month": "monthstart", "first of the next month": "next monthstart",
    "first day of the month": "monthstart", "first of the following month": "next monthstart",
    "turn you down": "refuse", "turned down": "refuse", "turn down": "refuse", "turns you down": "refuse",
    "go without": "without", "going without": "without", "went without": "without",
    "instead of": "insteadof", "rather than": "insteadof", "as opposed to": "insteadof",
    "is different from": "is not", "are different from": "are not",
    "is a different thing from": "is not", "not the same as": "not", "not the same thing as": "not",
    "is nothing like": "is not",
    "up to you": "optional", "up to the person": "optional", "your choice": "optional", "person choice": "optional",
    "your own choice": "optional", "own decision": "optional", "not obligatory": "optional",
    "not mandatory": "optional",
    "first day of a month": "monthstart", "first of a month": "monthstart", "first day of that month": "monthstart",
    "first day of the next month": "next monthstart", "first day of the following month": "next monthstart",
    "each benefit period": "perbenefit benefit period", "per benefit period": "perbenefit benefit period",
    "every benefit period": "perbenefit benefit period", "every new benefit period": "perbenefit benefit period",
    "each new benefit period": "perbenefit benefit period",
    "once a year": "yearly onetime", "once per year": "yearly onetime", "calendar year": "yearly",
    "one time": "onetime",
    "only once": "onetime", "just once": "onetime", "a single time": "onetime",
    "requested separately": "manual", "request it separately": "manual", "apply separately": "manual",
    "applied for separately": "manual", "apply for it separately": "manual", "separate application": "manual",
    "approve in advance": "priorauth", "approved in advance": "priorauth", "approve beforehand": "priorauth",
    "approved beforehand": "priorauth", "approval beforehand": "priorauth", "approval first": "priorauth",
    "ok in advance": "priorauth", "permission first": "priorauth", "permission in advance": "priorauth",
    "rest of a person life": "lifelong", "rest of the person life": "lifelong", "as long as you live": "lifelong",
    "rest of his life": "lifelong", "rest of her life": "lifelong", "rest of their life": "lifelong",
    "for good": "lifelong", "forever": "lifelong", "never goes away": "lifelong", "does not go away": "lifelong",
    "goes away": "end", "go away": "end", "runs out": "end", "run out": "end", "wears off": "end", "drops off": "end",
    "opens up": "begin", "opens": "begin", "opened": "begin", "closes": "end", "closed": "end",
    "from plan to plan": "differ", "plan to plan": "differ", "depends on": "differ", "depend on": "differ",
    "from state to state": "state differ", "from person to person": "differ", "from year to year": "yearly",
    "put off": "delay", "puts off": "delay", "putting off": "delay", "hold off": "delay",
    "gets into": "qualify", "get into": "qualify", "lands in": "qualify", "falls into": "qualify", "hand in": "file",
    "hands in": "file",
    "go on paying": "pay", "goes on paying": "pay", "keep paying": "continue pay", "keeps paying": "continue pay",
    "birth month": "birthday monthly", "the month you turn": "birthday monthly", "turn 65": "birthday",
    "gone over": "checked", "went over": "checked", "went through": "checked", "gone through": "checked",
    "phone number": "phone", "telephone number": "phone", "nursing home room": "ltc", "home for life": "ltc",
    "income taxes": "tax", "tax return": "taxreturn", "tax returns": "taxreturn",
    "taking effect": "begin", "took effect": "begin", "outside the united states": "abroad",
    "outside the u.s": "abroad",
    "outside the country": "abroad", "outside of the united states": "abroad", "in other countries": "abroad",
    "upper bound": "limit", "upper limit": "limit", "save you money": "lower cost", "saves you money": "lower cost",
    "save money": "lower cost", "saves money": "lower cost", "its own": "differ", "their own": "differ",
    "the same": "sameness",
    "national base beneficiary premium": "nationalbase premium", "national base premium": "nationalbase premium",
    "base beneficiary premium": "nationalbase premium", "own plan premium": "ownplan premium",
    "your plan premium": "ownplan premium", "plan own premium": "ownplan premium", "own premium": "ownplan premium",
    "charge the same": "cost sameness", "charges the same": "cost sameness", "cost the same": "cost sameness",
    "costs the same": "cost sameness", "the same price": "cost sameness", "the same everywhere": "sameness",
    "the same in every": "sameness", "in full": "everything", "the whole bill": "everything",
    "every dollar": "everything", "full cost": "everything",
    "the entire cost": "everything", "the entire bill": "everything", "all of the cost": "everything",
    "not a penny": "nothing", "not a cent": "nothing",
}  # fmt: skip

# Words with the same meaning here; each becomes the first word of its list. The stemmer handles inflections.
SYNONYMS: tuple[str, ...] = (
    "enroll enrol enrollment enrolment join register signup enrollee",
    "cover coverage reimburse",
    "begin start effective commence launch",
    "end stop expire finish cease terminate",
    "switch change swap",
    "penalty surcharge",
    "doctor physician provider clinician practitioner",
    "drug prescription medicine medication rx",
    "plan policy policies",
    "insurer carrier company",
    "limit cap maximum max ceiling moop threshold",
    "copay copayment copays",
    "yearly annual annually year",
    "monthly month",
    "quarterly quarter",
    "daily day",
    "weekly week",
    "employer job work employment workplace employed",
    "employee worker staff",
    "cost expense price spend spending",
    "help assistance assist aid support",
    "choose pick select",
    "delay late postpone wait later",
    "lifelong lifetime permanent permanently life",
    "underwrite underwriting",
    "separate standalone separately",
    "include offer provide contain bundle",
    "require must need needed mandatory necessary obligatory compulsory",
    "pay owe",
    "resource asset saving savings",
    "refuse deny reject decline",
    "tell inform",
    "individual single person",
    "couple married spouse joint",
    "bill charge invoice",
    "higher more greater increase raise larger extra additional rise",
    "lower less fewer decrease reduce smaller cheaper reduction",
    "guarantee guaranteed",
    "eligible eligibility qualify qualified qualifies",
    "automatic automatically",
    "emergency emergencies",
    "abroad overseas foreign",
    "dental dentist teeth",
    "vision eye glasses eyeglasses",
    "hearing",
    "service care treatment",
    "state",
    "counselor counsellor counseling counselling advice adviser",
    "free",
    "network",
    "benefit",
    "referral refer",
    "period window span",
    "rule requirement",
    "sell sold buy purchase",
    "keep remain stay continue maintain",
    "leave drop quit disenroll",
    "lose loss lost",
    "first primary",
    "second secondary",
    "early earlier sooner",
    "born birthday birth turn",
    "installment instalment payment",
    "differ vary different varies",
    "unbiased impartial neutral objective",
    "biased partial slanted",
    "hard difficult tough",
    "easy simple effortless",
    "apply application",
    "approve approval permission authorization",
    "check verify confirm",
    "remove eliminate abolish scrap",
    "move relocate relocation",
    "hospital inpatient",
    "extend prolong lengthen",
    "ask request",
    "paper paperwork document form",
    "rate percentage",
    "temporary",
    "divorce divorced",
    "retire retirement retired",
    "income earning wage salary earn",
    "decide determine",
    "fall autumn",
)

STOPWORDS = word_set(
    """a an the and or but nor if then than that this these those there here it its is are was were be been being am
    do does did done doing have has had having of in on at to for from by with as into onto over under about per
    between during through until up out off so such also too very just only even still yet both each any some
    you your yours yourself i me my we our us he she his her they them their theirs one ones who whom whose which
    what when where why how can could may might will would shall should not no never cannot
    get gets got getting use uses using used go goes make makes let lets while because since unless however
    although though generally typically usually normally often sometimes probably likely perhaps maybe possibly
    most many much several few other another same own well really actually basically simply currently now
    yes please note important thing things way example e g i.e etc amount amounts called known means mean
    case depending depend depends regardless like want see following apply applies based however
    people someone anyone everyone beneficiary beneficiaries standard set total typical
    come back down again around once right certain specific particular whatever whichever long
    part time will'll re ve ll d s t m"""
)

MEASURES = word_set("premium deductible coinsurance copay limit penalty income resource")
UNIVERSALS = word_set("never all every always everything fully completely entirely unlimited whichever everyone any")
RESTRICTED = word_set("some most may generally usually typically often might certain many sometimes mostly")
# Medicare words: a sentence without any of them, without a program and without a figure says little.
DOMAIN = MEASURES | word_set(
    "enroll cover drug doctor network hospital snf ltc penalty income resource insurer insurance benefit "
    "underwrite pay "
    "cost bill formulary referral priorauth employer state federal counselor hearing dental vision help "
    "eligible refuse "
    "guarantee period delay tax free service facility pharmacy record deadline phone appeal lose switch sell "
    "monthly yearly"
)
ANYBODY = word_set("any anyone anybody everyone everybody all every anywhere everywhere")
POSSIBLE = RESTRICTED | word_set("can could")

# Members of one group exclude each other: a fact about one says nothing about another.
STRICT_GROUPS: tuple[frozenset[str], ...] = (
    frozenset({"@qmb", "@slmb", "@qi", "@qdwi"}),
    frozenset({"@hmo", "@ppo"}),
    frozenset({"@iep", "@gep", "@sep", "@aep", "@maoep", "@mgoep"}),
    frozenset({"innet", "outnet"}),
    frozenset({"brand", "generic"}),
    frozenset({"individual", "couple"}),
    frozenset({"move", "lose", "divorce"}),
    frozenset({"emergency", "urgent"}),
    frozenset({"financial", "functional"}),
)
LEADING_GROUPS: tuple[frozenset[str], ...] = (
    frozenset({"@a", "@b", "@d"}),
    frozenset({"@ma", "@orig", "@medigap", "@dsnp"}),
    frozenset({"@lis", "@msp", "@medicaid"}),
    frozenset({"snf", "ltc"}),
)

ANTONYMS: tuple[tuple[str, str], ...] = (
    ("higher", "lower"), ("first", "second"), ("monthly", "quarterly"), ("monthly", "weekly"),
    ("lifelong", "temporary"), ("lifelong", "onetime"), ("yearly", "monthly"), ("maximum", "minimum"),
    ("allow", "prohibit"), ("early", "delay"), ("before", "after"), ("always", "never"), ("free", "cost"),
    ("free", "fee"),
    ("automatic", "manual"), ("gain", "lose"), ("begin", "end"), ("with", "without"),
    ("whicheverfirst", "whicheverlast"), ("biased", "unbiased"), ("perbenefit", "yearly"), ("perbenefit", "onetime"),
    ("lifelong", "end"), ("everything", "free"), ("everything", "nothing"), ("short", "long"), ("sameness", "differ"),
    ("increase", "reduce"), ("worse", "better"), ("easy", "hard"), ("private", "federal"), ("refuse", "accept"),
    ("include", "exclude"), ("separate", "combine"), ("ownplan", "nationalbase"), ("old", "new"), ("win", "lose"),
)  # fmt: skip
# Pairs that clash only next to the same word.
CONTEXTUAL: tuple[tuple[str, str], ...] = (("early", "delay"), ("short", "long"), ("old", "new"), ("lifelong", "end"))
# Words whose meaning depends on what follows them: they clash only before the same word.
DIRECTIONAL = frozenset({"befor", "after"})
# Pairs with other common meanings: they clash only if the statements are otherwise nearly equal.
WEAK_ANTONYMS = frozenset({("free", "cost"), ("begin", "end"), ("yearly", "monthly")})

# Words that a negation skips: the denied word comes after them.
MODIFIERS = word_set("yearly monthly routine separate oop further overall allow permit able entitle let possibl suppos")
EXCLUSIVE = (*STRICT_GROUPS, *LEADING_GROUPS)
GROUPED = frozenset[str]().union(*EXCLUSIVE)
# Things that can be covered or not: a fact supports a claim about one of them only if it names it.
SERVICES = word_set(
    "drug ltc snf dental vision hearing ambulanc insulin vaccin surgery dialysi hospic chiropractic "
    "acupunctur foot cosmetic transportation gym meal abroad emergency therapy brand generic"
)
NEGATORS = word_set(
    "not no never without cannot neither nor none nobody nothing lack lacks hardly prohibited forbidden barred "
    "banned unable fail fails refuses insteadof bans forbids"
)
# Negators that do not negate a whole clause: "without" negates its noun, "nor" repeats a "neither".
UNCOUNTED = word_set("without nor insteadof")
# Words that negate another word: that word's token is negated.
NEGATIVE_WORDS: dict[str, str] = {
    "exclude": "cover", "excludes": "cover", "excluded": "cover", "excluding": "cover", "uncovered": "cover",
    "optional": "require", "voluntary": "require", "unnecessary": "require", "exempt": "require",
    "ineligible": "eligible", "unlimited": "limit", "uncapped": "limit", "unavailable": "available",
    "waived": "require", "nonrefundable": "refund",
}  # fmt: skip
# Negative forms that do not deny what follows.
NOT_NEGATIONS: tuple[str, ...] = (
    "not only", "not just", "no matter", "whether or not", "if not", "no later than", "no more than", "not more than",
    "no less than", "not less than", "do not forget", "do not worry", "no problem", "why not", "no doubt",
    "not to mention", "no fewer than", "not simply", "not merely", "no sooner than", "not always", "not necessarily",
    "no exceptions", "no exception",
)  # fmt: skip
CLAUSE_WORDS = word_set("but however although though while whereas unless because if when so until since instead yet")
CONDITIONS = word_set("if unless when because since until although though while who whose")
