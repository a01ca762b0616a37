import { generateKeyPairSync, sign } from 'node:crypto';

const tlv = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
};
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const sequence = (...parts: readonly Buffer[]): Buffer => tlv(0x30, ...parts);
const text = (tag: number, value: string): Buffer => tlv(tag, Buffer.from(value));

const COMMON_NAME = hex('0603550403');
const SUBJECT_ALT_NAME = hex('0603551d11');
const ECDSA_WITH_SHA256 = sequence(hex('06082a8648ce3d040302'));

/** A key and a self-signed certificate for one IPv4 address, in PEM: nothing secret is kept in the tree. */
export function createCertificate(address: string): {
  readonly key: string;
  readonly cert: string;
} {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(tlv(0x31, sequence(COMMON_NAME, text(0x0c, 'holdfast test'))));
  const validity = sequence(text(0x17, '200101000000Z'), text(0x17, '490101000000Z'));
  const host = tlv(0x87, Buffer.from(address.split('.').map(Number)));
  const extension = sequence(SUBJECT_ALT_NAME, tlv(0x04, sequence(host)));
  const toBeSigned = sequence(
    tlv(0xa0, hex('020102')),
    hex('020101'),
    ECDSA_WITH_SHA256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(extension)),
  );
  const signature = sign('sha256', toBeSigned, privateKey);
  const der = sequence(toBeSigned, ECDSA_WITH_SHA256, tlv(0x03, hex('00'), signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}
