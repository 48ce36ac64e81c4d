/** Numbers, dates and names as people read them. */

const whole = new Intl.NumberFormat("en");
const usual = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** 12,345 */
export const count = (number) => whole.format(number);

/** '1 fact', '12,345 facts' */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A score: with two decimals, or two significant digits if it is small. */
export function score(number) {
  const format = number === 0 || Math.abs(number) >= 0.1 ? usual : small;
  return format.format(number).replace("-", "−");
}

/** A term of a sum: with its sign. */
export const term = (number) => `${number > 0 ? "+" : ""}${score(number)}`;

/** 0.0596 as '6.0 %'; a share under a thousandth as '< 0.1 %'. */
export function percent(share) {
  if (share === 0 || share === 1) return `${share * 100} %`;
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(share * 100).toFixed(1)} %`.replace("-", "−");
}

/** A difference to another candidate: '+2.10 more than for Susberg', '0.60 less than …'. */
export function comparison(margin, rival) {
  const amount = margin < 0 ? `${score(-margin)} less` : `${term(margin)} more`;
  return `${amount} than for ${rival}`;
}

/** The dates of a fact: '1990 – 1993', '1990', 'from 1990', 'until 1993', 'no dates'. */
export function dates(start, end) {
  const [from, to] = [known(start), known(end)];
  if (from && to) return from === to ? from : `${from} – ${to}`;
  if (from) return `from ${from}`;
  return to ? `until ${to}` : "no dates";
}

/** The part of a date that is known: '1990' of '1990-##-##', nothing of '####'. */
function known(date) {
  return (date ?? "").replace(/(-##)+$/, "").replace(/^#+$/, "");
}
