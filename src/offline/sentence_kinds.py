"""What a sentence does: ask, greet, refuse, refer, hedge, warn, or state something specific that needs a lookup.

These are patterns of English wording. They use one sentence (and, for names, the question), never a key.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..text.figures import figures, is_amount, kind
from .text import plain_lower, read_words
from .words import STATES, word_set

_REFUSAL = re.compile(
    r"\bi (?:am |m )?(?:sorry|afraid)\b.{0,40}\bi (?:can|could) not\b|"
    r"\bi (?:(?:really |simply |just )?(?:can|could|will|would|do) not|am not able to|am unable to|m unable to|"
    r"m not able to) (?:really |currently )?"
    r"(?:answer|help|assist|provide|give (?:you )?(?:advice|an answer|that|specific|medical|legal)|"
    r"offer (?:advice|guidance)"
    r"|advise|discuss|comment|share|go into|speak to|recommend|say|quote|list|promise|guess|calculate|walk you|steer|"
    r"give you (?:a|an|the|any) (?:\w+ ){0,2}(?:amount|figure|number|answer|date|percentage)s?)\b|"
    r"\bi (?:would |d |will )?(?:rather not|prefer not to) (?:say|state|go into|guess|answer|give|quote|"
    r"speculate|name)\b|"
    r"\b(?:something|which) i (?:can|could|will) not (?:do|help|answer|list|give|say|quote)\b|"
    r"\bi (?:am|m) not in a position to (?:say|promise|answer|advise|give|tell)\b|"
    r"\bi (?:am|m) (?:unable|not able) to (?:quote|list|say|tell|walk|promise|calculate)\b|"
    r"\bit would not be (?:fair|right) for me to\b|\bis not something i (?:can|could|have|am able)\b|"
    r"\b(?:decline|prefer not) to (?:answer|say|comment|advise)\b|\bas an ai\b.{0,60}\bcan not\b|"
    r"\b(?:this|that) is (?:not something|outside what|beyond what) (?:i|we)\b"
)
_UNKNOWING = re.compile(
    r"\b(?:i|we) (?:(?:really |simply |just |currently )?(?:can|could|do|would|am|are|will) ?not|m not|"
    r"am unable|m unable|"
    r"have no way|have no access|lack)\b.{0,25}?"
    r"\b(?:know|look|check|confirm|verify|access|see|tell|sure|certain|able|guarantee|search|say|look up|"
    r"have|find|of)\b|"
    r"\bno way (?:for me )?(?:to know|of knowing)\b|\bnot (?:sure|certain)\b|\bunable to (?:confirm|verify|"
    r"check|look)\b|"
    r"\bwithout (?:a look ?up|looking it up|checking|access)\b"
)
_DENYING = re.compile(
    r"\bmyth\b|\bmisconception\b|\bnot true\b|\bfalse\b|\buntrue\b|\bmistaken\b|\bincorrect\b|\bis wrong\b|"
    r"\b(?:do|should|can|must) not (?:just |simply |ever )?(?:assume|count on|rely on|believe|expect|think|"
    r"trust|take)\b|"
    r"\bnever (?:assume|count on|rely on|believe)\b|\bno guarantee\b|\bbeware\b|\bwary\b|\bbe careful\b|"
    r"\bwatch out\b|"
    r"\bnot guaranteed\b|\bnot (?:always|necessarily|every)\b|\bcontrary to\b|\bif (?:someone|anyone|"
    r"anybody) (?:tells|says|promises)\b|"
    r"\bsome(?:one| people)? (?:may |might |will )?(?:think|believe|say|tell)\b|\brather than assum"
)
_WHETHER = re.compile(
    r"\bwhether\b(?! or not)|\b(?:know|check|ask|see|confirm|verify|find out|tell|sure|certain|say|"
    r"determine|learn) if\b"
)
_ASKING_TO = re.compile(
    r"^(?:please |you (?:should|can|could|may|might|will) (?:want to |need to |also )?|i (?:would |"
    r"d )?(?:suggest|recommend|advise|"
    r"encourage)\b|(?:it|that) (?:is|s|would be|might be|may be|could be) (?:best|wise|worth|good|better|"
    r"helpful|safest|a good)|"
    r"(?:be sure|make sure|remember|consider|try|take|talk|speak|ask|check|visit|contact|call|compare|look|"
    r"review|confirm|"
    r"verify|see|use|find|get|go|let|start|reach|write|think|weigh|read|note|keep|bring|choose|pick|apply|"
    r"enroll|sign)\b)"
)
_RECOMMENDING = re.compile(
    r"\b(?:i (?:would |d )?(?:suggest|recommend|advise|encourage)|(?:you|one) (?:should|ought to|"
    r"may want to|might want to|"
    r"may wish to|will want to|would do well)|(?:is|be|it) (?:best|wise|worth|safest|a good idea|"
    r"advisable|sensible|smart) |"
    r"make sure|be sure|consider|my advice|keep in mind|remember to)\b"
)
_OFFICES = (
    r"(?:medicare\.gov|1 (?:800|877|888)|\bships?\b|shiphelp|counsel|social security|\bssa\b|"
    r"medicaid (?:office|agency)|"
    r"state (?:office|agency|health|medicaid|insurance)|plan finder|insurance department|website|hotline|helpline|"
    r"member services|customer service|benefits administrator|human resources)"
)
_PEOPLE = (
    r"(?:the plan\b|that plan|each plan|plans? directly|your plan|insurer|insurance company|agent|broker|directory|"
    r"office|advis[eo]r|expert|professional|employer|representative|doctor|provider|medicare\b|pharmac)"
)
_BIDDEN = (
    r"(?:^|[,;:.] ?|\b(?:please|kindly|or|and|to|also|can|could|should|may|might|must|by|just|simply|always|then|"
    r"best to|suggest|recommend|directly) )"
)
_NO_NEED = re.compile(
    r"\bno need to\b|\b(?:do|does|need) not (?:need to|have to|require)?\b ?(?:to )?(?:call|contact|ask|check)\b"
)
_REFERRAL = re.compile(
    _BIDDEN + r"(?:call|calling|contact|contacting|ask|check with|speak (?:with|to)|talk (?:with|to)|"
    r"reach(?:ing)? out to|"
    r"consult|get in touch with|(?<!by )phone|confirm with|verify with|(?<!allowed to )work with|check|confirm|"
    r"verify)\b.{0,60}?"
    rf"(?:{_OFFICES}|{_PEOPLE})|"
    + _BIDDEN + r"(?:visit|go to|see|use|try|look at|refer to|turn to|write to|find|search|start with)\b"
    rf".{{0,50}}?{_OFFICES}|"
    + rf"(?:{_OFFICES}|agent|broker|representative|office).{{0,50}}\b(?:can|will|could|is able to|are able to|may) "
    r"(?:also )?(?:help|tell|go through|answer|walk|explain|confirm|look|check|give|assist|compare|say|advise|point)\b|"
    r"\b(?:right|best) (?:person|place|people|source) to (?:ask|call|check|contact)\b|"
    r"\bfor (?:more|further|personal\w*) (?:information|details|help|advice)\b"
)  # fmt: skip
_STRONG_HEDGE = re.compile(
    r"\b(?:i am not|m not|not) (?:entirely |completely |quite |fully |100 )?(?:sure|certain)\b|\bmight\b|"
    r"\bpossibly\b|\bperhaps\b|"
    r"\bmaybe\b|\bi think\b|\bi believe\b|\bi guess\b|\bas far as i (?:know|can tell|am aware)\b|"
    r"\bit is possible\b|\bcould be\b|"
    r"\bi do not know\b|\bmy understanding\b|\bif i (?:recall|remember)\b|\bit seems\b|"
    r"\bi can not (?:be sure|say|confirm|verify)\b|"
    r"\bit depends\b|\bhard to say\b|\bnot entirely\b|\bunclear\b"
)
_MILD_HEDGE = re.compile(
    r"\b(?:usually|generally|typically|normally|often|may|probably|likely|in most cases|tend to|tends to|"
    r"as a rule|roughly|"
    r"approximately|around|about \$|sometimes|mostly|commonly|in general|should be|can vary|varies|vary|"
    r"depends|estimated)\b"
)
_CHATTER = re.compile(
    r"^(?:hi|hello|hey|thanks|thank you|great question|good question|sure|certainly|of course|absolutely|"
    r"happy to|glad|"
    r"i hope|hope this|i d be|i would be|i m happy|i am happy|let me|let s|here is|here are|here s|below|in summary|"
    r"feel free|good luck|congratulations|happy (?:early )?birthday|(?:a )?(?:quick|worked) example|there is "
    r"one (?:quirk|catch)|"
    r"i (?:wish|can hear|can tell you|can say|can see)|what i can|(?:i am|i m) (?:so |very )?sorry|sorry to "
    r"hear|do not worry|"
    r"as for you|say (?:you|your|rehab|it|she|he)\b|suppose\b|take a deep breath|people often ask|yes in most "
    r"cases|good news|great news|these are|i ll|i will|i understand|i m here|i am here|no problem|welcome|"
    r"you re welcome|best wishes|take care|short answer|that s a|that is a|this is a (?:good|great|common)|"
    r"would you like|"
    r"if you (?:would like|d like|want|tell|share|let me)\b.{0,80}\bi (?:can|could|ll|will)\b|"
    r"i can (?:also )?(?:help|explain|walk))\b"
)
_OPINION = re.compile(
    r"\b(?:in my opinion|personally|i feel|i prefer|up to you|personal (?:choice|preference|decision))\b"
)
_LOOKED_UP = re.compile(
    r"\b(?:i|we|the assistant|assistant) (?:have |has |had |ve |just |did |already |also |now |personally "
    r")*(?:checked|looked (?:it |this |that |"
    r"you |them |him |her )?(?:up|into|at|through)|verified|confirmed|searched|found|called|phoned|see in|pulled up|"
    r"reviewed|went (?:over|through)|gone (?:over|through)|read (?:your|the|over|through)|looked (?:over|in)|"
    r"accessed|examined|consulted|queried|contacted|submitted|filed|enrolled you|signed you up|booked|scheduled)\b|"
    r"\byour (?:case|claim|confirmation|reference|application|member) (?:number|no|id) (?:is|will be)\b|"
    r"\b(?:case|confirmation|reference|application) (?:number|no|id)[ #:.]{0,3}(?:is )?[a-z]{0,3}[0-9]{3}|"
    r"\baccording to (?:the|its|their|your|his|her|my)? ?(?:\w+ ){0,3}(?:directory|formulary|database|"
    r"records?|website|listing|provider list|plan documents?|file|account)\b|"
    r"\b(?:directory|records?|database|listing|formulary|file|account) (?:shows?|lists?|says?|confirms?|indicates?)\b"
)
_PARTICIPATES = re.compile(
    r"\b(?:in|part of|inside|within|outside|out of|not in|belongs to|joined|"
    r"left) (?:of )?(?:\w+ ){0,5}network\b|\binnet\b|"
    r"\b(?:accepts?|takes?|participates?|participating|contracts? with|contracted|affiliated|listed)\b"
)
_CLINICIAN = re.compile(r"\bDr\.? [A-Z]|\b[A-Z][a-z]+,? (?:MD|M\.D\.|DO|NP)\b")
_SOMEONES_DOCTOR = re.compile(
    r"^(?:yes |good news )?(?:your|that|this|the|he|she) ?(?:doctor|physician|pcp|specialist|"
    r"cardiologist)? (?:is|does|s)\b"
)
_COST_WORDS = re.compile(
    r"\b(?:premiums?|copays?|copayments?|deductible|coinsurance|costs?|price|charges?|fee|pay|maximum|limit|"
    r"runs? (?:you|about)|"
    r"(?:a|per|each) month|monthly)\b"
)
_COVER_WORDS = re.compile(r"\b(?:covers?|covered|formulary|tier|includes?|lists?)\b")
_AREA_WORDS = re.compile(r"\b(?:available|offered|sold|serves?|offers?|in your (?:area|county|zip)|service area)\b")
_NAME = re.compile(r"(?:[A-Z][A-Za-z0-9&'’]*(?:\.(?= [A-Z]))?)(?: (?:of |the )?[A-Z][A-Za-z0-9&'’]*)*")
_PLAN_NAME = re.compile(
    r"\b(?:Advantage|Plus|Gold|Silver|Bronze|Choice|Health|Healthcare|Care|Complete|Select|Value|Premier|"
    r"HMO|PPO|Plan|Classic|Saver)\b"
)
_COMMON_NAMES = word_set(
    """i i'm i’m i've i’ve
    medicare medicaid original advantage part parts a b c d medigap hmo ppo hmos ppos social security
    ship january february march april may june july august september october november december monday plan plans qmb
    slmb qi cobra extra help open enrollment period initial special general annual savings program programs finder
    and is the what does do can will if how when where who my yes no hi hello please also for in it you your so but
    supplement lis msp msps aep iep sep gep spanish english state health insurance assistance u.s ssi irmaa dsnp d-snp
    d-snps snp qualified beneficiary united states america american federal government
    specified low-income low income qualifying individual traditional cms"""
)


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Proper names other than Medicare's own terms: of plans, clinicians, drugs and places."""
    found = set()
    for match in _NAME.finditer(text):
        before = text[max(0, match.start() - 20) : match.start()].rstrip(' *_"“‘(')
        words = match.group().split()
        # A capital letter at the start of a sentence does not make a name.
        own = words[1:] if not before or before[-1] in ".!?:;\n-•|" else words
        if any(_is_own_name(word) for word in own):
            found.add(match.group())
    return frozenset(found)


def _is_own_name(word: str) -> bool:
    bare = word.strip(".'’,")
    return len(bare) > 1 and bare.lower().removesuffix("'s").removesuffix("’s") not in _COMMON_NAMES


def is_question(sentence: str) -> bool:
    return sentence.rstrip("*_\"'”’) ").endswith("?")


def is_refusal(sentence: str) -> bool:
    return bool(_REFUSAL.search(plain_lower(sentence)))


def is_unknowing(sentence: str) -> bool:
    """Whether it says that the speaker does not or cannot know."""
    return bool(_UNKNOWING.search(plain_lower(sentence)))


@lru_cache(maxsize=4096)
def leaves_open(sentence: str) -> bool:
    """Whether it states nothing: it asks, does not know, warns, or says "whether"."""
    plain = plain_lower(sentence)
    return is_question(sentence) or bool(_UNKNOWING.search(plain) or _DENYING.search(plain) or _WHETHER.search(plain))


def is_referral(sentence: str) -> bool:
    plain = plain_lower(sentence).strip("*_ ")
    return bool(_REFERRAL.search(plain)) and not _NO_NEED.search(plain)


def is_recommendation(sentence: str) -> bool:
    plain = plain_lower(sentence)
    return bool(_ASKING_TO.search(plain.lstrip("*_ ")) and not is_fact_shaped(plain)) or bool(
        _RECOMMENDING.search(plain)
    )


def is_fact_shaped(plain: str) -> bool:
    """Whether it states a right (`You can ...`) and does not advise (`You should ...`)."""
    return bool(re.match(r"you (?:can|may|could|will)\b", plain)) and not re.match(
        r"you (?:can|may|could|will) (?:want|wish|also )?(?:to )?(?:check|call|ask|contact|visit|talk|speak|"
        r"compare|confirm|reach)\b",
        plain,
    )


_RESULT = re.compile(
    r"^(?:sign up|signing up|enroll|apply|wait|miss|join|drop|switch|leave)\b.{3,80}?(?:,| and) ?(?:and |then "
    r")?(?:i believe |you |it |"
    r"coverage |your coverage |the plan )"
)
_ADVICE_BEHIND = re.compile(r",? so (?:it (?:is|s)? ?(?:worth|best|wise|a good)|you (?:should|may want|might want))")
_EXPECTING = re.compile(
    r"\byou should (?:generally |usually |normally |still |then )?(?:end up|be able|get|have|see|receive|"
    r"qualify|pay|owe|be covered)\b"
)


def is_consequence(sentence: str) -> bool:
    """Whether it states a result although it begins like advice: `Sign up late and it starts a month after.`"""
    plain = plain_lower(sentence).strip("*_ ")
    advice = _ADVICE_BEHIND.search(plain)
    stated = advice and len(plain[: advice.start()].split()) >= 5 and any(map(is_amount, figures(sentence)))
    return bool(_RESULT.search(plain) or _EXPECTING.search(plain) or stated)


def is_chatter(sentence: str) -> bool:
    plain = plain_lower(sentence).strip("*_#: ")
    if re.match(r"(?:i (?:can tell|can say|understand|hope)|what i can)\b.{0,40}\b(?:that|may|is that)\b", plain):
        return False
    return bool(_CHATTER.search(plain)) and all(kind(figure) == "number" for figure in figures(sentence))


def is_opinion(sentence: str) -> bool:
    return bool(_OPINION.search(plain_lower(sentence)))


def hedge(sentence: str) -> str:
    """`strong`, `mild` or nothing."""
    plain = plain_lower(sentence)
    if _STRONG_HEDGE.search(plain):
        return "strong"
    return "mild" if _MILD_HEDGE.search(plain) else ""


def claims_lookup(sentence: str) -> bool:
    return bool(_LOOKED_UP.search(plain_lower(sentence))) and not leaves_open(sentence)


def specifics(sentence: str, question: str) -> frozenset[str]:
    """The kinds of lookup facts that it states: network, cost, formulary, area; `lookup` if it claims one was done."""
    if leaves_open(sentence) or is_refusal(sentence):
        return frozenset()
    found = {"lookup"} if claims_lookup(sentence) else set()
    plain = plain_lower(sentence).strip("*_ ")
    asked = names(question)
    own = names(sentence)
    named = any(_PLAN_NAME.search(name) for name in own)
    named |= any(part in sentence for name in asked for part in _distinctive(name))
    branded = any(not STATES.fullmatch(name) for name in own) and re.search(r"\b(?:plan|hmo|ppo|policy)\b", plain)
    about_this = (
        named
        or bool(branded)
        or (bool(asked) and bool(re.match(r"(?:yes|no)?[, ]*(?:it|this|that|the plan|they|he|she)\b", plain)))
    )
    clinician = bool(_CLINICIAN.search(sentence)) or bool(asked and _SOMEONES_DOCTOR.search(plain))
    if (clinician or (about_this and "doctor" in read_words(sentence).content)) and _PARTICIPATES.search(plain):
        found.add("network")
    if about_this and _COST_WORDS.search(plain) and any(is_amount(figure) for figure in figures(sentence)):
        found.add("cost")
    if named and _COVER_WORDS.search(plain) and "drug" in read_words(question + " " + sentence).content:
        found.add("formulary")
    if named and _AREA_WORDS.search(plain) and re.search(r"\b(?:area|county|zip|city|state)\b", plain):
        found.add("area")
    return frozenset(found)


def _distinctive(name: str) -> list[str]:
    return [
        word.strip(".'’,") for word in name.split() if word.strip(".'’,").lower() not in _COMMON_NAMES and len(word) > 3
    ]


_META = re.compile(r"\b(?:specific|particular|named|individual|exact|any)\b")
_META_VERB = re.compile(
    r"^(?:claim|claiming|stating|states|state|saying|says|asserting|asserts|telling|tells|quoting|quotes|"
    r"giving|gives|suggesting|"
    r"suggests|implying|implies|promising|inventing|invents|naming|advising|advises|any (?:claim|statement)|"
    r"a (?:claim|statement)|that)\b"
)
_META_THAT = re.compile(
    r"^\s*(?:(?:any |a )?(?:claim|statement|assertion)s?|claiming|stating|saying|asserting|suggesting|"
    r"implying|promising|advising|"
    r"telling (?:\w+ ){1,4}|states?|says?|tells? (?:\w+ ){1,4})\s*that\s+|^\s*tell(?:ing|s)?\s+(?=\w)",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def forbidden_kinds(statement: str) -> frozenset[str]:
    """The kinds of lookup facts that a rule such as `Quoting a specific plan's premium without lookup` forbids."""
    plain = plain_lower(statement)
    lookup = re.search(r"\bwithout\b.{0,30}\b(?:look\w*|check\w*|verif\w*|source|access|search\w*)", plain)
    if re.search(r"\b(?:to have|having) (?:checked|looked|searched|verified|accessed|seen|called|consulted)\b", plain):
        return frozenset({"lookup"})
    if _META_THAT.match(statement) or not (lookup or (_META_VERB.search(plain) and _META.search(plain))):
        return frozenset()
    found = set()
    if re.search(r"\bnetwork\b|\bparticipat|\baccepts?\b", plain):
        found.add("network")
    if re.search(r"\b(?:premium|copay\w*|cost|price|deductible|coinsurance|limit|amount)s?\b", plain):
        found.add("cost")
    if re.search(r"\b(?:formulary|drugs?|tier)\b", plain):
        found.add("formulary")
    if re.search(r"\b(?:available|availability|area|county|zip)\b", plain):
        found.add("area")
    return frozenset(found)


@lru_cache(maxsize=1024)
def forbidden_statement(statement: str) -> str:
    """The X of a rule such as `Claiming that X`."""
    return _META_THAT.sub("", statement)
