"""The answer of `argosy why` in sentences."""

from __future__ import annotations

from argosy.model.answers import WhyAnswer
from argosy.model.explanations import EXCLUDED_BY
from argosy.model.units import format_count


def sentences(answer: WhyAnswer) -> list[str]:
    """The answer first, what would help last; unknown parts are left out."""
    lines = []
    if answer.placed_on:
        lines.append(_choice(answer))
    elif answer.looked_at:
        checked = format_count(answer.looked_at, "machine")
        lines.append(f"{checked} checked, {answer.feasible:,} could take it.")
    if answer.ruled_out:
        most_first = sorted(answer.ruled_out.items(), key=lambda item: (-item[1], item[0]))
        lines.append("ruled out: " + ", ".join(_excluded(*item) for item in most_first))
    # The answer itself may already have named the nearest miss.
    if answer.nearest_miss not in answer.sentence:
        lines.append(f"nearest miss: {answer.nearest_miss}")
    lines.extend(answer.violated)
    if answer.remedy:
        lines.append(f"what would help: {answer.remedy}")
    return [answer.sentence, *(_sentence(line) for line in lines if line)]


def _choice(answer: WhyAnswer) -> str:
    parts = []
    if answer.score is not None:
        parts.append(f"its score was {answer.score:,}")
    if answer.second:
        score = f" with {answer.second_score:,}" if answer.second_score is not None else ""
        parts.append(f"{answer.second} came second{score}")
    elif answer.second_score is not None:
        parts.append(f"waiting would have cost {answer.second_score:,}")
    return "; ".join(parts)


def _excluded(reason: str, count: int) -> str:
    """How many machines a reason rules out; a reason is a resource unless it is one of these."""
    one = count == 1
    match reason:
        case "filtered":
            return f"{count:,} {'does' if one else 'do'} not meet the task's requirements"
        case "down":
            return f"{count:,} {'is' if one else 'are'} down"
        case "full":
            return f"{count:,} {'has' if one else 'have'} nothing free"
        case "offered":
            return f"{count:,} {'is' if one else 'are'} on offer to others or held for gangs"
        case "declined":
            return f"{count:,} {'was' if one else 'were'} declined by its framework"
        case "not wanted":
            return f"{count:,} {'does' if one else 'do'} not pass its framework's filters"
        case "queue full":
            return f"{count:,} {'has' if one else 'have'} a full queue"
        case "unanswered":
            return f"{count:,} {'is' if one else 'are'} in clusters whose agents did not answer"
        case _ if reason.startswith(EXCLUDED_BY):
            return f"{count:,} {'is' if one else 'are'} excluded {reason}"
    return f"{count:,} {'lacks' if one else 'lack'} {reason}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
