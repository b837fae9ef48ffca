"""The canned conversation of the loopback server: three replies of about 400 words with a dozen checkable claims each.

They answer the first three questions of the shipped scenario 1. A reply is written as a sequence of parts: plain text,
and `Said`, a sentence that makes one claim. So every quote is exact by construction, and the verdict on a claim, with
the fact ids of the scenario's answer key, is written next to the words that it judges. The plain text states no fact
about Medicare and nothing that the screen marks: otherwise a judge would be asked more often than once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLAN_YEAR = 2026
"""The plan year of the dollar amounts below."""
_REMARK = re.compile(r"[A-Z][^\n]*?[.?](?= |\n|$)")
"""A sentence of the plain text; headings and marks of lists do not end in a period."""


@dataclass(frozen=True)
class Said:
    quote: str
    """One sentence, without quotation marks or line breaks, so that it is the same inside any JSON string."""
    evidence: tuple[str, ...] = ()
    """Fact ids that the sentence states, or contradicts if `severity` is given."""
    severity: str = "none"
    confidence: str = "high"

    @property
    def label(self) -> str:
        if not self.evidence:
            return "NOT_IN_KEY"
        return "SUPPORTED" if self.severity == "none" else "CONTRADICTED"


@dataclass(frozen=True)
class Seen:
    """What the scorer reads in a reply: a kind of remark and its exact words."""

    kind: str
    quote: str


@dataclass(frozen=True)
class Reply:
    turn_id: str
    question: str
    """Words of the question that appear in no other question and in no reply."""
    parts: tuple[str | Said, ...]
    observations: tuple[Seen, ...]

    @property
    def claims(self) -> tuple[Said, ...]:
        return tuple(part for part in self.parts if isinstance(part, Said))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Every sentence that makes no claim, but for questions."""
        plain = [part for part in self.parts if isinstance(part, str)]
        return tuple(said for part in plain for said in _REMARK.findall(part) if not said.endswith("?"))

    def text(self, left_out: int = 0) -> str:
        """The reply without its last `left_out` claims."""
        dropped = self.claims[len(self.claims) - left_out :]
        return "".join(p if isinstance(p, str) else p.quote for p in self.parts if p not in dropped)


DIFFERENCE = Reply(
    "Q1",
    "trying to decide between",
    (
        "Happy to walk you through this, Terrence. Think of it as two different ways to arrange the same thing, each "
        "with its own trade-offs, and take your time with it.\n\n## Original Medicare\n\n- ",
        Said("Original Medicare is run by the federal government and has Part A for hospital stays and Part B for "
             "doctor visits and outpatient care."),
        "\n- ",
        Said("With Original Medicare you can see any doctor or hospital in the country that accepts Medicare, and you "
             "do not need a referral to see a specialist.", ("F22",)),
        "\n- ",
        Said("Original Medicare has no yearly limit on what you pay out of pocket, so a long illness can become very "
             "expensive.", ("F2",)),
        "\n- ",
        Said("Many people add a separate Part D plan for prescriptions, because Original Medicare by itself does not "
             "cover most drugs you take at home.", ("F26",)),
        "\n- ",
        Said("You can keep a Medigap policy and use it together with a Medicare Advantage plan if you switch later.",
             ("F8",), "high", "medium"),
        "\n\n## Medicare Advantage\n\n- ",
        Said("Medicare Advantage plans are offered by private companies, and they must cover all of the benefits of "
             "Part A and Part B.", ("F5",)),
        "\n- ",
        Said("Medicare Advantage plans have provider networks, so your costs usually depend on whether a doctor is in "
             "the network.", ("F1",)),
        "\n- ",
        Said("A Medicare Advantage plan may require prior authorization before it pays for some services, such as "
             "imaging or a stay in a nursing facility.", ("F7",)),
        "\n- ",
        Said("You still pay the Part B premium when you are in a Medicare Advantage plan, even if the plan itself has "
             "no premium.", ("F6",)),
        "\n- ",
        Said("Every Medicare Advantage plan has a yearly limit on your out-of-pocket costs for Part A and Part B "
             "services.", ("F3",)),
        "\n- ",
        Said("Most Medicare Advantage plans include drug coverage and often some dental, vision or hearing benefits.",
             ("F25", "F27"), confidence="medium"),
        "\n- ",
        Said("The open enrollment period for Medigap lasts 6 months and starts when you are 65 or older and enrolled "
             "in Part B.", ("F9", "F16"), confidence="medium"),
        "\n\n## How people often choose\n\nStart with what matters most in your daily life. Do you have doctors you "
        "would hate to give up? Do you spend part of the year somewhere else? Would a large, unexpected bill be hard "
        "to absorb, or would you rather trade a higher monthly cost for fewer surprises? Write down what you "
        "would say, then look at both columns again with that list next to you. Neither choice is wrong.\n\nI may be "
        "missing details that matter in your case. A counselor at your State Health Insurance Assistance Program can "
        "sit down with you at no charge, and the government's comparison tool lists what is sold in your ZIP code. If "
        "you like, send me your prescriptions and your favorite doctors and we can sort out the next step together.",
    ),
    (
        Seen("hedge", "I may be missing details that matter in your case."),
        Seen("referral", "A counselor at your State Health Insurance Assistance Program can sit down with you"),
    ),
)  # fmt: skip

GOING_BACK = Reply(
    "Q2",
    "try Medicare Advantage first",
    (
        "Good questions, and they belong together, because the answer to the second one often decides the first.\n\n"
        "**What a hard year can cost on each side**\n\n- ",
        Said("Original Medicare has no yearly limit on out-of-pocket costs, so there is no maximum for a bad year.",
             ("F2",)),
        "\n- ",
        Said("After the Part B deductible you usually pay 20% of the approved amount for most doctor services.",
             ("F45",)),
        "\n- ",
        Said("Medicare Advantage plans must have a yearly limit on what you pay for Part A and Part B services.",
             ("F3",)),
        "\n- ",
        Said("In 2026 that limit cannot be higher than $9,250 for in-network care in a Medicare Advantage plan.",
             ("F4",)),
        "\n- ",
        Said("For plans that also cover care outside of the network, the combined limit can be as high as $13,900 in "
             "2026.", ("F43",), confidence="medium"),
        "\n- ",
        Said("Drug costs count toward a separate Part D limit and not toward the medical limit of the plan.",
             confidence="medium"),
        "\n\n**Going back to Original Medicare**\n\n- ",
        Said("If you are in a Medicare Advantage plan on January 1, you can return to Original Medicare between "
             "January 1 and March 31.", ("F11",)),
        "\n- ",
        Said("You can also drop a Medicare Advantage plan during Open Enrollment in the fall, which runs from October "
             "15 to November 30.", ("F12",), "high"),
        "\n- ",
        Said("If you return to Original Medicare, you will probably need a separate Part D plan for your drugs.",
             ("F26",)),
        "\n\n**Buying Medigap afterward**\n\n- ",
        Said("The Medigap open enrollment period lasts 6 months from the first month in which you are 65 or older and "
             "enrolled in Part B.", ("F9", "F16")),
        "\n- ",
        Said("After the Medigap open enrollment period, insurers in most states may use medical underwriting unless "
             "you have a guaranteed-issue right.", ("F10",)),
        "\n- ",
        Said("A Medigap policy cannot be sold to you for use with a Medicare Advantage plan.", ("F8",)),
        "\n\nWhat does this mean for you? Picture a calm year, in which you hardly notice the difference. Then picture "
        "a hard one, in and out of the hospital, when the size of the worst case matters far more than the monthly "
        "bill. Ask yourself which of them you want to be ready for, and how much cash you could set aside if the hard "
        "one came first.\n\nThe part that surprises people is timing. Trying one thing is easy; getting back what you "
        "had may not be, and the reason is your health at that moment, not your wishes. The rules may be different in "
        "Tennessee, so please confirm them before you sign anything. The free counselors of the Tennessee State Health "
        "Insurance Assistance Program can go over the dates with you, and their toll-free line answers day and night. "
        "I would make that call before the end of this month, with a notebook and your current card next to you.",
    ),
    (
        Seen("hedge", "The rules may be different in Tennessee, so please confirm them before you sign anything."),
        Seen("referral", "their toll-free line answers day and night"),
    ),
)  # fmt: skip

NETWORK = Reply(
    "Q3",
    "want to keep seeing",
    (
        "I understand, keeping a doctor you trust is worth a lot. Here is what I can say, and what I would check "
        "before you decide.\n\n### Your doctor\n\n",
        Said("Dr. Nora Ellingham is in the network of Cumberline Advantage for this year.", ("D1",), "high",
             "medium"),
        " ",
        Said("Networks can change during the year, and a doctor can leave the network of a plan at any time."),
        " ",
        Said("The provider directory on a plan's website is sometimes out of date, so the office itself is the better "
             "source for network questions."),
        "\n\n### HMO or PPO\n\n1. ",
        Said("Medicare Advantage plans have provider networks, and HMO and PPO plans use them in different ways.",
             ("F1",)),
        "\n2. ",
        Said("HMO plans generally do not pay for out-of-network care, apart from emergency care, urgent care and "
             "out-of-area dialysis.", ("F13",)),
        "\n3. ",
        Said("PPO plans pay for out-of-network care too, but at a higher cost to you.", ("F14",)),
        "\n4. ",
        Said("Many HMO plans ask you to choose a primary care doctor and to get a referral before you see a "
             "specialist.", ("F28",), confidence="medium"),
        "\n5. ",
        Said("PPO plans often charge a higher monthly premium than HMO plans in the same county.",
             confidence="medium"),
        "\n6. ",
        Said("Both kinds of Medicare Advantage plans may require prior authorization for some services.", ("F7",)),
        "\n7. ",
        Said("Either way, a Medicare Advantage plan must cover all Part A and Part B benefits.", ("F5",)),
        "\n8. ",
        Said("You pay the Part B premium in a Medicare Advantage plan of either kind.", ("F6",)),
        "\n9. ",
        Said("With Original Medicare there is no network, and you can stay with any doctor who accepts Medicare.",
             ("F22", "F23")),
        "\n\n### What I would do next\n\nPick up the phone and speak to the person who handles billing in the office. "
        "Say the full name on the card you are thinking about, word for word, because names that sound alike can "
        "belong to very different products. Ask whether the answer will be the same in January. Write down the date, "
        "the name of the person you spoke with and exactly what they said, and keep that note with your papers.\n\n"
        "Then think about everyone else you see: the eye doctor, the heart specialist, the pharmacy on the corner, "
        "the hospital you would want to be taken to at night. One familiar face is a good reason to lean one way, but "
        "the whole list should decide. If most of the list points in the same direction, the choice becomes much "
        "easier than it looks right now.\n\nI cannot look up live directories from here, so treat what I said about "
        "the doctor as something to confirm. If the calls feel like too much, a counselor from the state program will "
        "make them together with you, and no one will try to sell you anything. Would you like a short list of "
        "questions to read out on the phone?",
    ),
    (
        Seen("hedge", "I cannot look up live directories from here"),
        Seen("fabricated_specific", "Dr. Nora Ellingham is in the network of Cumberline Advantage for this year."),
        Seen("referral", "a counselor from the state program will make them together with you"),
    ),
)  # fmt: skip

REPLIES = (NETWORK, GOING_BACK, DIFFERENCE)
"""Latest question first: the last request of a conversation contains all of its questions."""
