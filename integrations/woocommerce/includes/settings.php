<?php
/**
 * The address of the service, and the secrets for it.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** The settings: constants of wp-config.php come before what the settings page stored. */
final class Settings {
	const OPTION    = 'countersign_settings';
	const SHOPS     = 'countersign_shops';
	const CONSTANTS = array(
		'base_url'       => 'COUNTERSIGN_BASE_URL',
		'api_key'        => 'COUNTERSIGN_API_KEY',
		'webhook_secret' => 'COUNTERSIGN_WEBHOOK_SECRET',
		// Of choices().
		'residence'      => 'COUNTERSIGN_RESIDENCE',
		'customers'      => 'COUNTERSIGN_CUSTOMERS',
	);

	/**
	 * One setting; empty if it is not set.
	 *
	 * @param string $name A key of CONSTANTS.
	 */
	public static function get( string $name ): string {
		if ( self::is_constant( $name ) ) {
			return (string) constant( self::CONSTANTS[ $name ] );
		}
		$stored = get_option( self::OPTION );
		return is_array( $stored ) ? (string) ( $stored[ $name ] ?? '' ) : '';
	}

	/**
	 * The settings that are chosen: for each its label, its choices by what is stored, and what the shop relies on.
	 */
	public static function choices(): array {
		return array(
			'residence' => array(
				__( 'Where does the buyer live?', 'countersign-woocommerce' ),
				array(
					''        => __( 'Not known: every order with a classed product goes through the notice', 'countersign-woocommerce' ),
					'billing' => __( 'In the state of the billing address', 'countersign-woocommerce' ),
				),
				__( 'With the billing address, your shop relies on what the buyer typed there, which is not checked: ask your lawyer whether that is enough. A ZIP code or state of California in either address counts as not known.', 'countersign-woocommerce' ),
			),
			'customers' => array(
				__( 'Who is a signed-in customer?', 'countersign-woocommerce' ),
				array(
					''        => __( 'Not known: each order has an identity check', 'countersign-woocommerce' ),
					'account' => __( 'The buyer of the account’s last cleared order: the next order asks for initials alone', 'countersign-woocommerce' ),
				),
				__( 'With the account, your shop relies on its password: whoever signs in counts as that buyer. An order that is refused has an identity check when it is begun again.', 'countersign-woocommerce' ),
			),
		);
	}

	/**
	 * Store one setting.
	 *
	 * @param string $name  A key of CONSTANTS.
	 * @param string $value Its value.
	 */
	public static function set( string $name, string $value ): void {
		$stored = get_option( self::OPTION );
		update_option( self::OPTION, array( $name => $value ) + ( is_array( $stored ) ? $stored : array() ) );
	}

	/**
	 * A name of this shop: a digest of its address, as WordPress stores it and before any plugin changes it for a language.
	 * What replaces addresses in the database of a copy does not find it.
	 */
	public static function shop(): string {
		$url = defined( 'WP_SITEURL' ) ? WP_SITEURL : ( wp_load_alloptions()['siteurl'] ?? get_option( 'siteurl' ) );
		return substr( hash( 'sha256', (string) preg_replace( '~^https?://(www\.)?~', '', strtolower( untrailingslashit( $url ) ) ) ), 0, 32 );
	}

	/**
	 * The names whose orders are this shop's own: its name now, and once staff have said that it moved, those of before.
	 *
	 * @return string[]
	 */
	public static function shops(): array {
		$known = get_option( self::SHOPS );
		if ( ! is_array( $known ) ) {
			$known = array( self::shop() );
			update_option( self::SHOPS, $known );
		}
		return in_array( self::shop(), $known, true ) ? $known : array( self::shop() );
	}

	/** Whether the database is that of a shop at another address: this is a copy of it, or it has moved. */
	public static function is_copy(): bool {
		return ! in_array( self::shop(), (array) get_option( self::SHOPS, array( self::shop() ) ), true );
	}

	/** The shop has moved: the orders of before are its own. */
	public static function has_moved(): void {
		update_option( self::SHOPS, array_unique( array_merge( (array) get_option( self::SHOPS, array() ), array( self::shop() ) ) ) );
	}

	/**
	 * Whether wp-config.php has this setting.
	 *
	 * @param string $name A key of CONSTANTS.
	 */
	public static function is_constant( string $name ): bool {
		return defined( self::CONSTANTS[ $name ] );
	}

	/**
	 * Whether the key can be sent there: by TLS, or to this machine.
	 *
	 * @param string $url An address.
	 */
	public static function is_safe( string $url ): bool {
		$parts = wp_parse_url( $url );
		if ( ! is_array( $parts ) || empty( $parts['host'] ) || isset( $parts['user'] ) ) {
			return false;
		}
		$scheme = strtolower( $parts['scheme'] ?? '' );
		return 'https' === $scheme
			|| ( 'http' === $scheme && in_array( strtolower( $parts['host'] ), array( 'localhost', '127.0.0.1', '[::1]' ), true ) );
	}

	/** Whether requests can be sent. */
	public static function is_complete(): bool {
		return '' !== self::get( 'api_key' ) && self::is_safe( self::get( 'base_url' ) );
	}

	/** Whether the key is one of the sandbox, in which nothing counts. */
	public static function is_test(): bool {
		return 1 === preg_match( '/^csign_[sr]k_test_/', self::get( 'api_key' ) );
	}
}
