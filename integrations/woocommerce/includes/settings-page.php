<?php
/**
 * The settings page.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * Settings → Countersign, for administrators. Secrets are never shown again.
 */
final class Settings_Page {

	const PAGE  = 'countersign';
	const CHECK = 'countersign_check';

	/**
	 * Add the page.
	 */
	public static function register(): void {
		add_action( 'admin_init', array( self::class, 'add_fields' ) );
		add_action( 'admin_menu', array( self::class, 'add_page' ) );
		add_action( 'admin_post_' . self::CHECK, array( self::class, 'check' ) );
		add_action( 'admin_notices', array( self::class, 'warn_of_test_key' ) );
	}

	/**
	 * Without WooCommerce the plugin does nothing.
	 */
	public static function woocommerce_is_missing(): void {
		echo '<div class="notice notice-error"><p>' . esc_html__( 'Countersign needs WooCommerce, which is not active: no order is checked.', 'countersign-woocommerce' ) . '</p></div>';
	}

	/**
	 * With a test key every buyer chooses what the identity check finds.
	 */
	public static function warn_of_test_key(): void {
		if ( Settings::is_test() && current_user_can( 'manage_options' ) ) {
			echo '<div class="notice notice-warning"><p>' . esc_html__( 'Countersign has a test key: buyers choose themselves what their identity check finds. Do not sell with it.', 'countersign-woocommerce' ) . '</p></div>';
		}
	}

	/**
	 * Declare the option, which options.php stores for those who may `manage_options`.
	 */
	public static function add_fields(): void {
		register_setting(
			self::PAGE,
			Settings::OPTION,
			array(
				'type'              => 'array',
				'sanitize_callback' => array( self::class, 'sanitize' ),
				'show_in_rest'      => false,
			)
		);
		add_settings_section( 'countersign', '', '__return_null', self::PAGE );
		$fields = array(
			'base_url'       => __( 'Address of the service', 'countersign-woocommerce' ),
			'api_key'        => __( 'API key', 'countersign-woocommerce' ),
			'webhook_secret' => __( 'Webhook secret', 'countersign-woocommerce' ),
			'residence'      => __( 'Where does the buyer live?', 'countersign-woocommerce' ),
		);
		foreach ( $fields as $name => $label ) {
			add_settings_field( $name, $label, array( self::class, 'show_field' ), self::PAGE, 'countersign', array( 'label_for' => "countersign-{$name}", 'name' => $name ) );
		}
	}

	/**
	 * Add the page to the menu.
	 */
	public static function add_page(): void {
		add_options_page( 'Countersign', 'Countersign', 'manage_options', self::PAGE, array( self::class, 'show' ) );
	}

	/**
	 * One field; that of a secret is always empty.
	 *
	 * @param array $arguments With the `name`.
	 */
	public static function show_field( array $arguments ): void {
		$name   = $arguments['name'];
		$secret = 'base_url' !== $name;
		if ( Settings::is_constant( $name ) ) {
			echo esc_html__( 'Set in wp-config.php', 'countersign-woocommerce' );
			return;
		}
		if ( 'residence' === $name ) {
			self::show_residence();
			return;
		}
		printf(
			'<input type="%1$s" class="regular-text" id="countersign-%2$s" name="%3$s[%2$s]" value="%4$s" placeholder="%5$s" autocomplete="off">',
			$secret ? 'password' : 'url',
			esc_attr( $name ),
			esc_attr( Settings::OPTION ),
			esc_attr( $secret ? '' : Settings::get( $name ) ),
			esc_attr( $secret && '' !== Settings::get( $name ) ? __( 'Stored: leave empty to keep it', 'countersign-woocommerce' ) : '' )
		);
	}

	/**
	 * The choice of what the shop relies on, with the sentence about it.
	 */
	private static function show_residence(): void {
		echo '<select id="countersign-residence" name="' . esc_attr( Settings::OPTION ) . '[residence]">';
		foreach ( Residence::choices() as $value => $label ) {
			echo '<option value="' . esc_attr( $value ) . '"' . selected( Settings::get( 'residence' ), $value, false ) . '>' . esc_html( $label ) . '</option>';
		}
		echo '</select><p class="description">' . esc_html( Residence::explanation() ) . '</p>';
	}

	/**
	 * What may be stored. WordPress calls it twice when the option is new, so it keeps what it has made.
	 *
	 * @param mixed $given What the form sent.
	 */
	public static function sanitize( $given ): array {
		$given  = is_array( $given ) ? $given : array();
		$stored = get_option( Settings::OPTION );
		$kept   = array_merge( array_fill_keys( array_keys( Settings::CONSTANTS ), '' ), is_array( $stored ) ? $stored : array() );
		$url    = isset( $given['base_url'] ) ? rtrim( esc_url_raw( trim( (string) $given['base_url'] ) ), '/' ) : $kept['base_url'];
		if ( '' !== $url && ! Settings::is_safe( $url ) ) {
			add_settings_error( Settings::OPTION, 'base_url', __( 'The address has to begin with https:// (or be on this machine): the key could be read on the way.', 'countersign-woocommerce' ) );
			$url = $kept['base_url'];
		}
		if ( $url !== $kept['base_url'] && '' !== $kept['base_url'] ) {
			// A key is for one service. Otherwise a changed address could be sent the stored one.
			$kept['api_key'] = '';
		}
		$kept['base_url'] = $url;
		if ( isset( $given['residence'] ) && array_key_exists( (string) $given['residence'], Residence::choices() ) ) {
			$kept['residence'] = (string) $given['residence'];
		}
		foreach ( array( 'api_key' => '/^csign_[sr]k_(test|live)_\S+$/D', 'webhook_secret' => '/^whsec_[A-Za-z0-9+\/=]+$/D' ) as $name => $form ) {
			$value = isset( $given[ $name ] ) ? trim( (string) $given[ $name ] ) : '';
			if ( '' !== $value && 1 !== preg_match( $form, $value ) ) {
				/* translators: %s: api_key or webhook_secret */
				add_settings_error( Settings::OPTION, $name, sprintf( __( 'This is no %s: it was not stored.', 'countersign-woocommerce' ), $name ) );
			} elseif ( '' !== $value ) {
				$kept[ $name ] = $value;
			}
		}
		return $kept;
	}

	/**
	 * The page.
	 */
	public static function show(): void {
		if ( ! current_user_can( 'manage_options' ) ) {
			return;
		}
		$checked = isset( $_GET['checked'] ) ? sanitize_key( wp_unslash( $_GET['checked'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- shown, and nothing else.
		echo '<div class="wrap"><h1>Countersign</h1>';
		if ( 'ok' === $checked ) {
			$mode = Settings::is_test() ? __( 'The key is one of the sandbox: nothing counts.', 'countersign-woocommerce' ) : '';
			echo '<div class="notice notice-success"><p>' . esc_html( __( 'The service responds, and knows the key.', 'countersign-woocommerce' ) . ' ' . $mode ) . '</p></div>';
		} elseif ( '' !== $checked ) {
			/* translators: %s: a code */
			echo '<div class="notice notice-error"><p>' . esc_html( sprintf( __( 'It does not work: %s.', 'countersign-woocommerce' ), $checked ) ) . '</p></div>';
		}
		echo '<form method="post" action="' . esc_url( admin_url( 'options.php' ) ) . '">';
		settings_fields( self::PAGE );
		do_settings_sections( self::PAGE );
		submit_button();
		echo '</form><h2>' . esc_html__( 'Webhook', 'countersign-woocommerce' ) . '</h2><p>';
		echo esc_html__( 'The address for the webhook endpoint of the service:', 'countersign-woocommerce' ) . ' <code>' . esc_html( rest_url( 'countersign/v1/webhook' ) ) . '</code></p>';
		echo '<form method="post" action="' . esc_url( admin_url( 'admin-post.php' ) ) . '">';
		echo '<input type="hidden" name="action" value="' . esc_attr( self::CHECK ) . '">';
		wp_nonce_field( self::CHECK );
		submit_button( __( 'Check the connection', 'countersign-woocommerce' ), 'secondary' );
		echo '</form></div>';
	}

	/**
	 * Send a request with the stored settings.
	 */
	public static function check(): void {
		if ( ! current_user_can( 'manage_options' ) ) {
			wp_die( esc_html__( 'You may not do this.', 'countersign-woocommerce' ), '', array( 'response' => 403 ) );
		}
		check_admin_referer( self::CHECK );
		$checked = 'ok';
		try {
			Client::get( '/v1/notices' );
		} catch ( Service_Error $error ) {
			$checked = $error->reason;
		}
		wp_safe_redirect( add_query_arg( array( 'page' => self::PAGE, 'checked' => $checked ), admin_url( 'options-general.php' ) ) );
		exit;
	}
}
