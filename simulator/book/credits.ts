// Credits
// -------
// Sums of credits as whole billionths, so that nothing is lost between a price, a charge and a total.

export type Credits = bigint;

const PLACES = 9;
const ONE = 10n ** BigInt(PLACES);

export const creditsPattern = /^\d{1,15}(\.\d{1,9})?$/;

export function parseCredits(text: string): Credits {
  if (!creditsPattern.test(text)) throw new RangeError(`"${text}" is not a number of credits.`);
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole) * ONE + BigInt(fraction.padEnd(PLACES, '0'));
}

export function formatCredits(credits: Credits): string {
  const size = credits < 0n ? -credits : credits;
  const fraction = (size % ONE).toString().padStart(PLACES, '0').replace(/0+$/, '');
  const whole = `${credits < 0n ? '-' : ''}${(size / ONE).toString()}`;
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
